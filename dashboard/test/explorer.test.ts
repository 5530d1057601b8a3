import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ExplorerEvent, mergeEvents } from '../src/pages/explorer/explorer-event.ts'
import { patchSearch, readExplorerSearch } from '../src/pages/explorer/explorer-search.ts'
import {
  exactPatch,
  shiftPatch,
  windowOf,
  windowWords,
  zoomOutPatch,
} from '../src/pages/explorer/time-window.ts'

const NOW = Date.parse('2026-03-04T05:06:07.008Z')
const DAY_MS = 86_400_000

test('a range ends with the minute that is under way, exact times are exact', () => {
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

test('an address with times that are none still shows a day', () => {
  for (const search of [
    { from: 'x', to: 'y' },
    { range: 'toString' },
    { from: '2026-03-05', to: '2026-03-04' },
  ]) {
    const { fromMs, toMs } = windowOf(search, NOW)
    assert.equal(toMs - fromMs, DAY_MS)
  }
  assert.equal(windowWords(windowOf({}, NOW)), 'Last 24 hours')
})

test('zooming out leads back to the range that was zoomed into', () => {
  const inside = patchSearch({ range: '7d' }, exactPatch(NOW - 3 * DAY_MS, NOW - 2 * DAY_MS))
  assert.deepEqual(patchSearch(inside, zoomOutPatch(inside, NOW)), { range: '7d' })
  const outside = patchSearch({}, exactPatch(NOW - 30 * DAY_MS, NOW - 29 * DAY_MS))
  const { fromMs, toMs } = windowOf(patchSearch(outside, zoomOutPatch(outside, NOW)), NOW)
  assert.deepEqual([fromMs, toMs], [NOW - 31 * DAY_MS, NOW - 28 * DAY_MS])
})

test('the window before and the one after it is the range one came from', () => {
  const before = patchSearch({ range: '24h' }, shiftPatch(windowOf({ range: '24h' }, NOW), -1, NOW))
  assert.equal(before.to, '2026-03-03T05:07:00.000Z')
  const again = patchSearch(before, shiftPatch(windowOf(before, NOW), 1, NOW + 60_000))
  assert.deepEqual(again, { range: '24h' })
})

test('an address keeps what is known, as text, and forgets the rest', () => {
  const search = readExplorerSearch({
    category: 'auth',
    text: 42,
    live: true,
    foo: 'x',
    action: '',
  })
  assert.deepEqual(search, { category: 'auth', text: '42', live: 'true' })
})

test('what came live and what was loaded are one list, in order and without doubles', () => {
  const loaded = [event('09', 'e'), event('07', 'c'), event('05', 'a')]
  const fresh = [event('10', 'f'), event('09', 'e'), event('08', 'd'), event('04', 'z')]
  const ids = (isWhole: boolean) =>
    mergeEvents(fresh, loaded, isWhole)
      .map(({ id }) => id)
      .join('')
  assert.equal(ids(true), 'fedcaz')
  // The last one belongs to a page that is still to be loaded.
  assert.equal(ids(false), 'fedca')
})

function event(second: string, id: string): ExplorerEvent {
  const timestamp = `2026-03-04T05:06:${second}.000Z`
  const place = { id, seq: 1, companyId: '', workspaceId: '', projectId: null, traceId: null }
  const parts = { actor: null, resource: null, metadata: null, sealed: {}, salts: {} }
  const what = { category: 'c', action: 'a', timestamp, receivedAt: timestamp }
  return { ...place, ...parts, ...what, hash: '', prevHash: '' }
}
