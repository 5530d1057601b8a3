import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { manualClock } from '../harness/timing/clock.ts'
import { learnAllEventTypes, readTypes } from '../harness/event/event-types.ts'
import { sendEvents } from '../harness/dashboard/explorer.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const { clock, advance } = manualClock()
const annals = await startTestApp({ role: 'api', clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

type Type = TestResponse['json']

/** A workspace, and functions to send events of one type and to read what was learned about it. */
async function newType() {
  const { workspace, workspaceKey: key } = await annals.createCompany()
  const workspaceId = workspace.id
  const type = { category: 'billing', action: 'invoice.paid' }
  return {
    send: async (...metadata: object[]): Promise<string[]> => {
      const ids = await sendEvents(
        annals,
        key,
        metadata.map((one) => ({ ...type, metadata: one })),
      )
      await learnAllEventTypes(db, workspaceId)
      return ids
    },
    read: async (search?: Record<string, string>): Promise<Type> =>
      (await readTypes(annals, { key, workspaceId }, search)).data[0],
  }
}

const times = (count: number, metadata: object) => Array<object>(count).fill(metadata)

test('a key that appears in an established type is drift, with the event that showed it first', async () => {
  const { send, read } = await newType()
  await send(...times(10, { amount: 1 }))
  assert.deepEqual((await read()).flags, ['NEW'])
  advance(1_000)
  const [, id] = await send({ amount: 1 }, { amount: 1, coupon: 'X' }, { amount: 1, coupon: 'Y' })
  const type = await read()
  assert.deepEqual(type.flags, ['NEW', 'DRIFT'])
  assert.deepEqual(type.drift, [
    {
      kind: 'KEY_ADDED',
      path: ['coupon'],
      type: 'string',
      seenAt: new Date(clock()).toISOString(),
      eventId: id,
    },
  ])
})

test('keys that appear among the first 10 events are not drift', async () => {
  const { send, read } = await newType()
  const keys = Array.from({ length: 10 }, (_, nth) => ({ [`k${nth}`]: nth }))
  for (const metadata of keys) await send(metadata)
  assert.deepEqual((await read()).drift, [])
  await send({ k10: 10 })
  assert.deepEqual((await read()).drift.length, 1)
})

test('a key whose values get another JSON type is drift, even early', async () => {
  const { send, read } = await newType()
  const [, second, third] = await send({ amount: 1 }, { amount: '1' }, { amount: [1] })
  const drift = (await read()).drift.map(({ seenAt: _seenAt, ...change }: Type) => change)
  assert.deepEqual(drift, [
    { kind: 'TYPE_ADDED', path: ['amount'], type: 'array', eventId: third },
    { kind: 'TYPE_ADDED', path: ['amount'], type: 'string', eventId: second },
  ])
  await send({ amount: 2 }, { amount: '2' })
  assert.equal((await read()).drift.length, 2)
})

test('a null value is not drift, and neither is a key that stops appearing', async () => {
  const { send, read } = await newType()
  await send(...times(12, { error: null, amount: 1 }))
  await send({ error: 'declined', amount: null }, {})
  assert.deepEqual((await read()).drift, [])
})

test('the keys of a new object are part of one change', async () => {
  const { send, read } = await newType()
  await send(...times(12, { card: 'visa' }))
  await send({ card: { brand: 'visa', last4: '4242' }, payer: { id: 1 } })
  const changes = (await read()).drift.map(({ kind, path }: Type) => [kind, path])
  assert.deepEqual(changes.toSorted(), [
    ['KEY_ADDED', ['payer']],
    ['TYPE_ADDED', ['card']],
  ])
  await send({ card: { brand: 'visa', country: 'NL' } })
  const [newest] = (await read()).drift
  assert.deepEqual([newest.kind, newest.path], ['KEY_ADDED', ['card', 'country']])
})

test('a type is new for 7 days, and drift is shown for 30', async () => {
  const { send, read } = await newType()
  await send({ amount: 1 })
  advance(7 * DAY_MS - 1)
  await send({ amount: '1' })
  assert.deepEqual((await read()).flags, ['NEW', 'DRIFT'])
  assert.equal((await read({ flag: 'NEW' }))?.count, 2)
  advance(1)
  assert.deepEqual((await read()).flags, ['DRIFT'])
  assert.equal(await read({ flag: 'NEW' }), undefined)
  advance(30 * DAY_MS - 2)
  assert.deepEqual((await read({ flag: 'DRIFT' })).flags, ['DRIFT'])
  advance(1)
  assert.deepEqual([(await read()).flags, (await read()).drift], [[], []])
  assert.equal(await read({ flag: 'DRIFT' }), undefined)
  assert.deepEqual((await read()).metadataKeys[0].types, ['number', 'string'])
})

test('filters by category and action, and a cursor is only valid for the same list', async () => {
  const { workspaces, companyKey: key } = await annals.createCompany({ workspaces: ['A', 'B'] })
  const [a, b] = workspaces
  assert(a && b)
  const names = ['x', 'y'].flatMap((category) =>
    ['1', '2', '3'].map((action) => ({ category, action })),
  )
  for (const { id, workspaceKey } of workspaces) {
    await sendEvents(annals, workspaceKey, names)
    await learnAllEventTypes(db, id)
  }
  const list = async (search: Record<string, string>) => {
    const { data } = await readTypes(annals, { key, workspaceId: a.id }, search)
    return data.map(({ category, action }: Type) => category + action)
  }
  assert.deepEqual(await list({ limit: '4' }), ['x1', 'x2', 'x3', 'y1', 'y2', 'y3'])
  assert.deepEqual(await list({ category: 'x', limit: '1' }), ['x1', 'x2', 'x3'])
  assert.deepEqual(await list({ category: 'y', action: '2' }), ['y2'])
  assert.deepEqual(await list({ category: 'z' }), [])
  const page = (workspaceId: string, search: string) =>
    annals.call('GET', `/v1/workspaces/${workspaceId}/event-types?${search}`, { key })
  const cursor = encodeURIComponent((await page(a.id, 'limit=2')).json.nextCursor)
  assert.equal((await page(a.id, `limit=1&cursor=${cursor}`)).json.data[0].action, '3')
  for (const [id, search] of [
    [b.id, ''],
    [a.id, 'category=x&'],
    [a.id, 'action=1&'],
    [a.id, 'flag=NEW&'],
  ]) {
    const { status, json } = await page(id ?? '', `${search}cursor=${cursor}`)
    assert.deepEqual([status, json.code], [400, 'invalid_cursor'], search)
  }
})
