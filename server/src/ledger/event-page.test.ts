import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import {
  bytesPerWorkspace,
  fillPage,
  lastPosition,
  mergePages,
  PAGE_BYTES_MAX,
  type PagePosition,
  type PartialPage,
  rowsPerWorkspace,
  SCANNED_ROWS_MAX,
} from './event-page.ts'

type Row = {
  timestampMs: number
  id: string
  actor: string | null
  resource: string | null
  metadata: string | null
}

/** Few instants and ids, so that most timestamps are equal. */
const anyEvents = fc.uniqueArray(
  fc.record({
    timestampMs: fc.integer({ min: -3, max: 3 }),
    id: fc.integer({ min: 0, max: 99 }).map((number) => String(number).padStart(2, '0')),
    actor: fc.constant(null),
    resource: fc.constant(null),
    metadata: fc.constant(null),
  }),
  { selector: ({ id }) => id, maxLength: 40 },
)

const newestFirst = (a: PagePosition, b: PagePosition) =>
  b.timestampMs - a.timestampMs || (a.id < b.id ? 1 : -1)

const whole = (events: readonly Row[]) => ({ events: [...events], next: null })
/** The first events of a list. */
const cutAt = (events: readonly Row[], count: number): PartialPage<Row> => {
  const first = events.slice(0, count)
  return { events: first, next: events.length > count ? lastPosition(first) : null }
}

test('merging pages gives the same result as sorting all events', () => {
  const anyCount = fc.integer({ min: 1, max: 6 })
  const anyLimit = fc.integer({ min: 1, max: 50 })
  fc.assert(
    fc.property(anyEvents, anyCount, anyLimit, (events, count, limit) => {
      const pages = Array.from({ length: count }, (_, page) =>
        whole(events.filter((_event, index) => index % count === page).toSorted(newestFirst)),
      )
      const before = JSON.stringify(pages)
      const newest = events.toSorted(newestFirst)
      assert.deepEqual(mergePages(pages, limit), cutAt(newest, limit))
      const oldestPages = pages.map((page) => whole(page.events.toReversed()))
      assert.deepEqual(mergePages(oldestPages, limit, 'asc'), cutAt(newest.toReversed(), limit))
      assert.equal(JSON.stringify(pages), before, 'the pages are unchanged')
    }),
  )
})

test('pages truncated anywhere lead to every event once, in order', () => {
  const anyCuts = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 3, maxLength: 3 })
  fc.assert(
    fc.property(anyEvents, anyCuts, fc.integer({ min: 1, max: 10 }), (events, cuts, limit) => {
      let left = events.toSorted(newestFirst)
      const read: Row[] = []
      for (let more = true; more;) {
        const pages = cuts.map((cut, list) => {
          const own = left.filter(({ id }) => Number(id) % cuts.length === list)
          return cutAt(own, cut)
        })
        const page = mergePages(pages, limit)
        assert(page.events.length > 0 || page.next === null, 'each page continues')
        read.push(...page.events)
        left = left.slice(page.events.length)
        more = page.next !== null
      }
      assert.deepEqual(read, events.toSorted(newestFirst))
    }),
  )
})

test('repeated scans return every matching event once, in order, and terminate', async () => {
  const anyRows = fc.integer({ min: 1, max: 5 })
  const isMatch = ({ id }: Row) => Number(id) % 4 === 0
  await fc.assert(
    fc.asyncProperty(anyEvents, anyRows, anyRows, anyRows, async (events, rows, limit, rounds) => {
      const sorted = events.toSorted(newestFirst)
      const lists = [0, 1, 2].map((list) => sorted.filter(({ id }) => Number(id) % 3 === list))
      const scan = (list: readonly Row[], after: PagePosition | null, left: number) => {
        const scanned = cutAt(
          list.filter((event) => !after || newestFirst(event, after) > 0),
          rows,
        )
        const matching = cutAt(scanned.events.filter(isMatch), left)
        return matching.next ? matching : { events: matching.events, next: scanned.next }
      }
      const found: Row[] = []
      let after: PagePosition | null = null
      do {
        let roundsLeft = rounds
        const page: PartialPage<Row> = await fillPage(
          async (position, left) =>
            mergePages(
              lists.map((list) => scan(list, position, left)),
              left,
            ),
          { after, limit, monotonic: () => 0, mayContinue: () => --roundsLeft > 0 },
        )
        assert(page.events.length <= limit)
        assert(!after || !page.next || newestFirst(page.next, after) > 0, 'each page continues')
        found.push(...page.events)
        after = page.next
      } while (after !== null)
      assert.deepEqual(found, sorted.filter(isMatch))
    }),
  )
})

test('a scan stops when the time is up or the page has enough bytes', async () => {
  const event = { timestampMs: 0, id: '', actor: null, resource: null, metadata: null }
  const countRounds = async (roundMs: number, metadata: string | null) => {
    let nowMs = 0
    let rounds = 0
    await fillPage(
      async () => {
        nowMs += roundMs
        rounds += 1
        const position = { timestampMs: -rounds, id: '' }
        return { events: [{ ...event, ...position, metadata }], next: position }
      },
      { after: null, limit: 1_000, monotonic: () => nowMs, mayContinue: () => true },
    )
    return rounds
  }
  assert.equal(await countRounds(100, null), 5)
  assert.equal(await countRounds(0, 'x'.repeat(PAGE_BYTES_MAX / 4)), 4)
})

test('a page ends when its events reach the size limit, and has at least one event', () => {
  const large = Array.from({ length: 5 }, (_, index) => ({
    timestampMs: -index,
    id: String(index),
    actor: null,
    resource: null,
    metadata: 'x'.repeat(PAGE_BYTES_MAX / 2),
  }))
  assert.deepEqual(mergePages([whole(large)], 10), cutAt(large, 2))
  const huge = large.map((event) => ({ ...event, metadata: 'x'.repeat(2 * PAGE_BYTES_MAX) }))
  assert.deepEqual(mergePages([whole(huge)], 10), cutAt(huge, 1))
})

test('reading a hundred workspaces takes only a few megabytes', () => {
  assert.equal(bytesPerWorkspace(1), PAGE_BYTES_MAX)
  assert(100 * bytesPerWorkspace(100) <= 4 * PAGE_BYTES_MAX)
  assert.equal(rowsPerWorkspace(1), SCANNED_ROWS_MAX)
  assert(100 * rowsPerWorkspace(100) <= 10 * SCANNED_ROWS_MAX)
})

test('merging no pages or empty pages returns nothing', () => {
  for (const pages of [[], [whole([])], [whole([]), whole([]), whole([])]]) {
    assert.deepEqual(mergePages(pages, 10), whole([]))
  }
})
