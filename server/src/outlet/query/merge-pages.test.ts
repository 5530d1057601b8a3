import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { mergePages } from './merge-pages.ts'

type Placed = { timestampMs: number; id: string }

/** Few instants and ids, so that equal timestamps are the rule. */
const anyEvents = fc.uniqueArray(
  fc.record({
    timestampMs: fc.integer({ min: -3, max: 3 }),
    id: fc.integer({ min: 0, max: 99 }).map((number) => String(number).padStart(2, '0')),
  }),
  { selector: ({ id }) => id, maxLength: 40 },
)

const newestFirst = (a: Placed, b: Placed) =>
  b.timestampMs - a.timestampMs || (a.id < b.id ? 1 : -1)

test('merged pages are what sorting all their events would give', () => {
  const anyCount = fc.integer({ min: 1, max: 6 })
  const anyLimit = fc.integer({ min: 0, max: 50 })
  fc.assert(
    fc.property(anyEvents, anyCount, anyLimit, (events, count, limit) => {
      const pages = Array.from({ length: count }, (_, page) =>
        events.filter((_event, index) => index % count === page).toSorted(newestFirst),
      )
      const before = pages.map((page) => [...page])
      assert.deepEqual(mergePages(pages, limit), events.toSorted(newestFirst).slice(0, limit))
      assert.deepEqual(pages, before, 'the pages are left as they are')
    }),
  )
})

test('a page of each list that is as long as the limit is enough for the merged page', () => {
  const anyLimit = fc.integer({ min: 1, max: 10 })
  fc.assert(
    fc.property(anyEvents, anyLimit, (events, limit) => {
      const lists = [0, 1, 2].map((list) =>
        events.filter(({ id }) => Number(id) % 3 === list).toSorted(newestFirst),
      )
      const pages = lists.map((list) => list.slice(0, limit))
      assert.deepEqual(mergePages(pages, limit), mergePages(lists, limit))
    }),
  )
})

test('no pages and empty pages merge to nothing', () => {
  assert.deepEqual(mergePages([], 10), [])
  assert.deepEqual(mergePages([[]], 10), [])
  assert.deepEqual(mergePages([[], [], []], 10), [])
})
