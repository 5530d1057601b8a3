import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  delayText,
  type ExplorerEvent,
  hotTimeOf,
  mergeEvents,
  reachesArchive,
  withArchived,
} from '../src/pages/explorer/explorer-event.ts'
import { exclusionIn } from '../src/query/exclusions.ts'
import { addPatch, patchSearch, readExplorerSearch } from '../src/query/explorer-search.ts'
import { viewPatch, viewQueryOf } from '../src/pages/explorer/view/view-query.ts'
import { bodyFilters, chipTexts, withoutChip } from '../src/query/filter-bodies.ts'
import { chipsOf, clearPatch, filtersOf, labelOf, removePatch } from '../src/query/filters.ts'
import {
  exactPatch,
  livePatch,
  shiftPatch,
  windowOf,
  windowText,
  zoomOutPatch,
} from '../src/query/time-window.ts'

const NOW = Date.parse('2026-03-04T05:06:07.008Z')
const DAY_MS = 86_400_000

test('a relative range ends with the current minute, and a custom range is exact', () => {
  const { fromMs, toMs, range } = windowOf({ range: '1h' }, NOW)
  assert.equal(new Date(toMs).toISOString(), '2026-03-04T05:07:00.000Z')
  assert.equal(toMs - fromMs, 3_600_000)
  assert.equal(range, '1h')
  const exact = { from: '2026-03-01T00:00:00.500Z', to: '2026-03-02T00:00:00.000Z', range: '1h' }
  assert.deepEqual(windowOf(exact, NOW), {
    fromMs: Date.parse(exact.from),
    toMs: Date.parse(exact.to),
    range: null,
  })
})

test('a URL with invalid times shows the last 24 hours', () => {
  for (const search of [
    { from: 'x', to: 'y' },
    { range: 'toString' },
    { from: '2026-03-05', to: '2026-03-04' },
  ]) {
    const { fromMs, toMs } = windowOf(search, NOW)
    assert.equal(toMs - fromMs, DAY_MS)
  }
  assert.equal(windowText(windowOf({}, NOW)), 'Last 24 hours')
})

test('zooming out returns to the range before the zoom', () => {
  const inside = patchSearch({ range: '7d' }, exactPatch(NOW - 3 * DAY_MS, NOW - 2 * DAY_MS))
  assert.deepEqual(patchSearch(inside, zoomOutPatch(inside, NOW)), { range: '7d' })
  const outside = patchSearch({}, exactPatch(NOW - 30 * DAY_MS, NOW - 29 * DAY_MS))
  const { fromMs, toMs } = windowOf(patchSearch(outside, zoomOutPatch(outside, NOW)), NOW)
  assert.deepEqual([fromMs, toMs], [NOW - 31 * DAY_MS, NOW - 28 * DAY_MS])
})

test('periods follow the calendar of the viewer’s time zone', () => {
  const times = (range: string, firstMs: number | null = null) => {
    const { fromMs, toMs } = windowOf({ range }, NOW, firstMs)
    return [fromMs, toMs].map((ms) => {
      const at = new Date(ms)
      return [at.getFullYear(), at.getMonth() + 1, at.getDate(), at.getHours()].join('-')
    })
  }
  const now = new Date(NOW)
  const [, month, day] = [now.getFullYear(), now.getMonth() + 1, now.getDate()]
  assert.equal(times('today')[0], `2026-${month}-${day}-0`)
  assert.deepEqual(times('yesterday'), [`2026-${month}-${day - 1}-0`, `2026-${month}-${day}-0`])
  assert.deepEqual(times('previousMonth'), ['2026-2-1-0', '2026-3-1-0'])
  assert.equal(new Date(windowOf({ range: 'thisWeek' }, NOW).fromMs).getHours(), 0)
  assert.equal(windowOf({ range: 'allTime' }, NOW, NOW - DAY_MS).fromMs, NOW - DAY_MS)
  assert.equal(windowOf({ range: 'allTime' }, NOW).fromMs, 0)
  assert.equal(windowText(windowOf({ range: 'previousMonth' }, NOW)), 'Last month')
})

test('moving from today leads to yesterday and back, and zooming out of a period to a longer range', () => {
  const today = windowOf({ range: 'today' }, NOW)
  const before = patchSearch({ range: 'today', live: '1' }, shiftPatch(today, -1, NOW))
  assert.deepEqual(before, { range: 'yesterday' })
  const again = patchSearch(before, shiftPatch(windowOf(before, NOW), 1, NOW))
  assert.deepEqual(again, { range: 'today' })
  assert.deepEqual(patchSearch(before, zoomOutPatch(before, NOW)), { range: '7d' })
  assert.deepEqual(zoomOutPatch({ range: 'allTime' }, NOW), {})
  assert.deepEqual(patchSearch(before, livePatch('yesterday')), { live: '1' })
})

test('moving to the previous period and back returns to the same range', () => {
  const before = patchSearch({ range: '24h' }, shiftPatch(windowOf({ range: '24h' }, NOW), -1, NOW))
  assert.equal(before.to, '2026-03-03T05:07:00.000Z')
  const again = patchSearch(before, shiftPatch(windowOf(before, NOW), 1, NOW + 60_000))
  assert.deepEqual(again, { range: '24h' })
})

test('known URL parameters are kept as text, and others are dropped', () => {
  const search = readExplorerSearch({
    category: 'auth',
    text: 42,
    live: true,
    foo: 'x',
    action: '',
  })
  assert.deepEqual(search, { category: 'auth', text: '42', live: 'true' })
})

test('an event is late if its time is more than five minutes from its receipt', () => {
  const delayOf = (delayMs: number) =>
    delayText({
      ...event('00', 'a'),
      timestamp: new Date(NOW).toISOString(),
      receivedAt: new Date(NOW + delayMs).toISOString(),
    })
  assert.equal(delayOf(0), null)
  assert.equal(delayOf(300_000), null)
  assert.equal(delayOf(-300_000), null)
  assert.equal(delayOf(300_001), 'received 5 minutes late')
  assert.equal(delayOf(3_600_000), 'received 1 hour late')
  assert.equal(delayOf(3 * DAY_MS), 'received 3 days late')
  assert.equal(delayOf(-7_200_000), 'received 2 hours before its time')
})

test('live and loaded events are merged in order, without duplicates', () => {
  const loaded = [event('09', 'e'), event('07', 'c'), event('05', 'a')]
  const fresh = [event('10', 'f'), event('09', 'e'), event('08', 'd'), event('04', 'z')]
  const ids = (isFull: boolean) =>
    mergeEvents(fresh, loaded, { isFull, sort: 'timestamp' })
      .map(({ id }) => id)
      .join('')
  assert.equal(ids(true), 'fedcaz')
  // The last one belongs to a page that isn't loaded yet.
  assert.equal(ids(false), 'fedca')
})

function event(second: string, id: string): ExplorerEvent {
  const timestamp = `2026-03-04T05:06:${second}.000Z`
  const ids = { id, seq: 1, companyId: '', workspaceId: '', projectId: null, traceId: null }
  const parts = { actor: null, resource: null, metadata: null, sealed: {}, salts: {} }
  const what = { category: 'c', action: 'a', timestamp, receivedAt: timestamp }
  return { ...ids, ...parts, ...what, hash: '', prevHash: '' }
}

test('a URL can contain one or several exclusions, and invalid ones are dropped', () => {
  assert.deepEqual(readExplorerSearch({ not: 'category:a:b' }), { not: ['category:a:b'] })
  const not = ['category:a', 'category:a', 'traceId:x', 'severity:high', 'action', 7, 'action:b']
  assert.deepEqual(readExplorerSearch({ not }), { not: ['category:a', 'action:b'] })
  assert.deepEqual(readExplorerSearch({ not: ['x'] }), {})
})

test('filtering by a value and excluding it replace each other', () => {
  const search = { category: 'billing', range: '7d' }
  const excluded = patchSearch(search, { exclude: 'category:billing' })
  assert.deepEqual(excluded, { range: '7d', not: ['category:billing'] })
  const more = patchSearch(excluded, { exclude: 'category:auth' })
  assert.deepEqual(patchSearch(more, { exclude: 'category:auth' }), more)
  assert.deepEqual(patchSearch(more, { category: 'auth' }), { range: '7d', category: 'auth' })
  assert.deepEqual(patchSearch(more, { category: null, action: 'a' }), { ...more, action: 'a' })
  assert.deepEqual(patchSearch(more, { include: 'category:billing' }).not, ['category:auth'])
  assert.deepEqual(patchSearch(more, clearPatch()), { range: '7d' })
  const view = { category: 'auth', not: ['category:ops'] }
  assert.deepEqual(
    patchSearch(more, view),
    { range: '7d', ...view },
    'a view replaces the whole query',
  )
})

test('a URL can contain several values of a field, and adding one keeps the others', () => {
  const search = readExplorerSearch({ category: ['a', 'b', 'a', ''], traceId: ['x', 'y'] })
  assert.deepEqual(search, { category: ['a', 'b'] })
  assert.deepEqual(readExplorerSearch({ category: ['a', 'a'] }), { category: 'a' })
  const first = patchSearch({}, addPatch({ category: 'a' }))
  assert.deepEqual(first, { category: 'a' })
  assert.deepEqual(patchSearch(first, addPatch({ category: 'a' })), first)
  const both = patchSearch(first, addPatch({ category: 'b' }))
  assert.deepEqual(both, { category: ['a', 'b'] })
  assert.deepEqual(patchSearch(both, { exclude: 'category:a' }), {
    category: 'b',
    not: ['category:a'],
  })
  assert.deepEqual(patchSearch(both, { ...clearPatch(), category: 'c' }), { category: 'c' })
  const category = Array.from({ length: 20 }, (_, nth) => `c${nth}`)
  assert.deepEqual(patchSearch({ category }, addPatch({ category: 'more' })), { category })
})

test('each value has a chip of its own, and a body has several values of a field in anyOf', () => {
  const search = { category: ['auth', 'a:b'], action: 'login', text: 'x' }
  const filters = filtersOf(search, 'w')
  const chips = chipsOf(filters, String)
  assert.deepEqual(chipTexts(chips), ['category: auth or a:b', 'action: login'])
  assert.deepEqual(bodyFilters(filters), {
    action: 'login',
    text: 'x',
    workspaceId: 'w',
    anyOf: ['category:auth', 'category:a:b'],
  })
  for (const chip of chips) {
    const left = filtersOf(patchSearch(search, removePatch(chip)), 'w')
    assert.deepEqual(left, withoutChip(filters, chip))
    assert.equal(chipsOf(left, String).length, 2)
  }
})

test('a view restores single values, several values and a trace', () => {
  const search = {
    category: ['auth', 'a:b'],
    action: 'login',
    traceId: 'a'.repeat(32),
    range: '7d',
    not: ['actorId:x'],
  }
  const query = viewQueryOf(search, filtersOf(search, null), windowOf(search, NOW))
  const view = { id: 'v', workspaceId: null, query }
  const restored = patchSearch({ category: 'other', resourceId: 'r' }, viewPatch(view))
  assert.deepEqual(restored, { ...search, workspaceId: 'all', view: 'v' })
})

test('exclusions beyond the limit of the service are dropped', () => {
  const not = Array.from({ length: 20 }, (_, nth) => `category:c${nth}`)
  assert.deepEqual(patchSearch({ not }, { exclude: 'category:more' }), { not })
})

test('an exclusion’s chip contains the word “not” and can be removed on its own', () => {
  const search = { category: 'auth', not: ['action:login', 'projectId:p'] }
  const filters = filtersOf(search, null)
  const chips = chipsOf(filters, (id) => `Project ${id}`)
  assert.deepEqual(
    chips.map((chip) => `${labelOf(chip)}: ${chip.value}`),
    ['category: auth', 'not action: login', 'not project: Project p'],
  )
  for (const chip of chips) {
    const left = filtersOf(patchSearch(search, removePatch(chip)), null)
    assert.deepEqual(left, withoutChip(filters, chip))
    assert.equal(chipsOf(left, String).length, 2)
  }
})

test('excluding a resource excludes its ID, or its type if it has no ID', () => {
  assert.deepEqual(exclusionIn({ resourceType: 'invoice', resourceId: '7' }), {
    field: 'resourceId',
    value: '7',
  })
  const typeAlone = exclusionIn({ resourceType: 'invoice', resourceId: null })
  assert.deepEqual(typeAlone, { field: 'resourceType', value: 'invoice' })
  for (const patch of [{ workspaceId: 'w' }, { traceId: 't', from: 'x' }, { actorId: '' }]) {
    assert.equal(exclusionIn(patch), null)
  }
})

test('a range of times of receipt is one chip, and is part of views and exports', () => {
  const search = {
    receivedFrom: '2026-03-04T05:00:00.000Z',
    receivedTo: '2026-03-04T06:00:00.000Z',
    sort: 'receivedAt',
  }
  const filters = filtersOf(search, null)
  const [chip, ...others] = chipsOf(filters, String)
  assert(chip && others.length === 0)
  assert.equal(labelOf(chip), 'received')
  const { sort: _sort, ...range } = search
  assert.deepEqual(bodyFilters(filters), range)
  assert.deepEqual(withoutChip(filters, chip), {})
  assert.deepEqual(patchSearch(search, removePatch(chip)), { sort: 'receivedAt' })
  assert.deepEqual(filtersOf({ receivedFrom: 'yesterday' }, null), {})
})

test('live and archived events join a list in its order', () => {
  const early = { ...event('01', 'c'), receivedAt: '2026-03-04T07:00:00.000Z' }
  const listed = [event('09', 'b'), event('05', 'a')]
  const ids = (sort: 'timestamp' | 'receivedAt') =>
    withArchived(listed, [early], sort)
      .map(({ id }) => id)
      .join('')
  assert.equal(ids('timestamp'), 'bac')
  assert.equal(ids('receivedAt'), 'cba')
})

test('a query for events that arrived in the hot time does not reach the archive', () => {
  const hotTime = hotTimeOf({
    data: [],
    nextCursor: null,
    hotSince: '2026-03-01T05:00:00.000Z',
    completeSince: '2026-03-04T05:00:00.000Z',
    archivedUntil: '2026-03-04T04:00:00.000Z',
  })
  const all = { fromMs: 0 }
  assert.equal(hotTime.sinceMs, Date.parse('2026-03-04T04:00:00.001Z'))
  assert.equal(reachesArchive(hotTime, all, {}), true)
  assert.equal(reachesArchive(hotTime, all, { receivedFrom: '2026-03-04T04:59:59.999Z' }), true)
  assert.equal(reachesArchive(hotTime, all, { receivedFrom: '2026-03-04T05:00:00.000Z' }), false)
})
