import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Annals, type FeedOptions } from '../index.ts'

/** A client of a service that sends these pages in order, and the last one forever. */
function clientOf(pages: readonly object[]) {
  let sent = 0
  const annals = new Annals({
    apiKey: 'key',
    baseUrl: 'http://annals.example',
    fetch: async () => {
      sent += 1
      assert(sent < 100, 'the client never stops')
      return Response.json(pages[sent - 1] ?? pages.at(-1))
    },
  })
  return { annals, sent: () => sent }
}

test('a list fails when its next cursor leads to the same page again', async () => {
  const page = { data: [{ id: '1' }], nextCursor: 'a' }
  const { annals, sent } = clientOf([page])
  const read: string[] = []
  const loop = async (cursor?: string) => {
    for await (const { id } of annals.events.list(cursor === undefined ? {} : { cursor })) {
      read.push(id)
    }
  }
  await assert.rejects(loop(), { name: 'AnnalsError', code: 'repeated_cursor' })
  assert.deepEqual([read, sent()], [['1', '1'], 2])
  await assert.rejects(loop('a'), { code: 'repeated_cursor' })
  assert.equal(sent(), 3)
  const withoutCursor = clientOf([{ data: [] }])
  await assert.rejects(withoutCursor.annals.events.list().take(1), { code: 'repeated_cursor' })
})

test('a feed fails when the next page would not be after its events', async () => {
  const events = [{ seq: 5 }, { seq: 6 }]
  const read = (page: object, options: FeedOptions = {}) =>
    Array.fromAsync(clientOf([page]).annals.events.feed({ workspaceId: 'w', after: 4, ...options }))
  for (const next of [4, 3, 0, Number.NaN, undefined]) {
    await assert.rejects(read({ data: events, next }), { code: 'repeated_cursor' }, String(next))
  }
  await assert.rejects(read({ data: [], next: 3 }, { follow: true }), { code: 'repeated_cursor' })
  const { annals } = clientOf([
    { data: events, next: 6 },
    { data: [], next: 6 },
  ])
  const feed = annals.events.feed({ workspaceId: 'w', after: 4 })
  assert.deepEqual(await Array.fromAsync(feed), events)
})

test('a list and a feed fail when a page has no list of events', async () => {
  for (const body of [null, [], 5, {}, { data: null }, { data: [1] }]) {
    const { annals } = clientOf([body as object])
    const expected = { code: 'unexpected_response' }
    await assert.rejects(annals.events.list().take(1), expected, JSON.stringify(body))
    await assert.rejects(Array.fromAsync(annals.events.feed({ workspaceId: 'w' })), expected)
  }
})

test('a batch fails unless the response has one result per event', async () => {
  const events = [1, 2].map((nth) => ({ category: 'c', action: `a${nth}` }))
  const result = { id: '1', status: 201 }
  for (const body of [null, {}, { results: [result] }, { results: [result, result, result] }]) {
    const { annals } = clientOf([body as object])
    await assert.rejects(annals.events.batch(events), { code: 'unexpected_response' })
  }
  const complete = clientOf([{ results: [result, result] }])
  assert.equal((await complete.annals.events.batch(events)).length, 2)
})
