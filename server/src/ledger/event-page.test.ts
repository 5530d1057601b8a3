import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { bytesPerWorkspace, mergePages, PAGE_BYTES_MAX } from './event-page.ts'

type Placed = {
  timestampMs: number
  id: string
  actor: string | null
  resource: string | null
  metadata: string | null
}

/** Few instants and ids, so that equal timestamps are the rule. */
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

const newestFirst = (a: Placed, b: Placed) =>
  b.timestampMs - a.timestampMs || (a.id < b.id ? 1 : -1)

const whole = (events: readonly Placed[]) => ({ events: [...events], hasMore: false })

test('merged pages are what sorting all their events would give', () => {
  const anyCount = fc.integer({ min: 1, max: 6 })
  const anyLimit = fc.integer({ min: 0, max: 50 })
  fc.assert(
    fc.property(anyEvents, anyCount, anyLimit, (events, count, limit) => {
      const pages = Array.from({ length: count }, (_, page) =>
        whole(events.filter((_event, index) => index % count === page).toSorted(newestFirst)),
      )
      const before = JSON.stringify(pages)
      assert.deepEqual(mergePages(pages, limit), {
        events: events.toSorted(newestFirst).slice(0, limit),
        hasMore: events.length > limit,
      })
      assert.equal(JSON.stringify(pages), before, 'the pages are left as they are')
    }),
  )
})

test('pages that were cut anywhere lead to every event once, in order', () => {
  const anyCuts = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 3, maxLength: 3 })
  fc.assert(
    fc.property(anyEvents, anyCuts, fc.integer({ min: 1, max: 10 }), (events, cuts, limit) => {
      let left = events.toSorted(newestFirst)
      const read: Placed[] = []
      for (let more = true; more;) {
        const pages = cuts.map((cut, list) => {
          const own = left.filter(({ id }) => Number(id) % cuts.length === list)
          return { events: own.slice(0, cut), hasMore: own.length > cut }
        })
        const page = mergePages(pages, limit)
        assert(page.events.length > 0 || !page.hasMore, 'each page leads on')
        read.push(...page.events)
        left = left.slice(page.events.length)
        more = page.hasMore
      }
      assert.deepEqual(read, events.toSorted(newestFirst))
    }),
  )
})

test('a page ends when its events reach the size of a page, and has one event at least', () => {
  const large = Array.from({ length: 5 }, (_, index) => ({
    timestampMs: -index,
    id: String(index),
    actor: null,
    resource: null,
    metadata: 'x'.repeat(PAGE_BYTES_MAX / 2),
  }))
  assert.deepEqual(mergePages([whole(large)], 10), { events: large.slice(0, 2), hasMore: true })
  const huge = large.map((event) => ({ ...event, metadata: 'x'.repeat(2 * PAGE_BYTES_MAX) }))
  assert.deepEqual(mergePages([whole(huge)], 10), { events: huge.slice(0, 1), hasMore: true })
})

test('a hundred workspaces together are read in a few megabytes', () => {
  assert.equal(bytesPerWorkspace(1), PAGE_BYTES_MAX)
  assert(100 * bytesPerWorkspace(100) <= 4 * PAGE_BYTES_MAX)
})

test('no pages and empty pages merge to nothing', () => {
  for (const pages of [[], [whole([])], [whole([]), whole([]), whole([])]]) {
    assert.deepEqual(mergePages(pages, 10), whole([]))
  }
})
