import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { LiveTail } from '../../src/outlet/explorer/live-tail/live-tail.ts'
import { newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { requestShare } from '../../src/platform/scheduling/time-slice.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { actionsOf, openSource, type Source } from '../harness/http/event-source.ts'
import { eventually, eventuallyWithin, within } from '../harness/timing/eventually.ts'
import { removeUpTo, sendEvents } from '../harness/dashboard/explorer.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const { clock, advance } = manualClock()
const annals = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const named =
  (event: string) =>
  ({ frames }: Source) =>
    frames.some((frame) => frame.event === event)
const until = (check: () => boolean) => eventually(() => assert(check()))
const event = (action: string, category = 'c') => ({ category, action })

test('a new event arrives within a second, with everything needed to verify it', async () => {
  const tenant = await annals.createCompany()
  const member = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
  await sendEvents(annals, tenant.workspaceKey, [event('before')])
  await using source = await openSource(annals, member)
  assert.equal(source.status, 200)
  assert.equal(source.headers['content-type'], 'text/event-stream; charset=utf-8')
  assert.equal(source.headers['cache-control'], 'no-store')
  await until(() => named('open')(source))
  for (const action of ['one', 'two', 'three']) {
    const [id] = await sendEvents(annals, tenant.workspaceKey, [event(action)])
    await eventuallyWithin(1_000, () => assert(actionsOf(source).includes(action)))
    const frame = source.frames.at(-1)
    assert(frame)
    const record = JSON.parse(frame.data)
    assert.equal(record.id, id)
    assert('sealed' in record && 'salts' in record)
  }
  assert.deepEqual(actionsOf(source), ['one', 'two', 'three'])
})

test('a live tail contains only events that match its filters and workspaces', async () => {
  const tenant = await annals.createCompany({ workspaces: ['First', 'Second'] })
  const foreign = await annals.createCompany()
  const [first, second] = tenant.workspaces
  assert(first && second)
  const viewer = await signInAs(annals, tenant, 'VIEWER', [first.id])
  const owner = await signInAs(annals, tenant, 'OWNER')
  await using mine = await openSource(annals, viewer, { query: '?text=WANTED' })
  await using all = await openSource(annals, owner)
  await sendEvents(annals, foreign.workspaceKey, [event('wanted foreign')])
  await sendEvents(annals, second.workspaceKey, [event('wanted second')])
  await sendEvents(annals, first.workspaceKey, [
    event('other'),
    event('wanted first'),
    event('x', 'Wanted'),
  ])
  await until(() => actionsOf(mine).length === 2 && actionsOf(all).length === 4)
  assert.deepEqual(actionsOf(mine), ['wanted first', 'x'])
  assert.deepEqual(actionsOf(all).toSorted(), ['other', 'wanted first', 'wanted second', 'x'])
  for (const query of [`?workspaceId=${second.id}`, `?workspaceId=${foreign.workspace.id}`]) {
    await using refused = await openSource(annals, viewer, { query })
    assert.equal(refused.status, 404)
  }
  await using ranged = await openSource(annals, viewer, { query: '?from=2026-01-01T00:00:00Z' })
  assert.equal(ranged.status, 400)
})

test('a live tail resumes where it stopped, event by event', async () => {
  const tenant = await annals.createCompany({ workspaces: ['First', 'Second'] })
  const [first, second] = tenant.workspaces
  assert(first && second)
  const owner = await signInAs(annals, tenant, 'OWNER')
  const ids: string[] = []
  {
    await using source = await openSource(annals, owner)
    await sendEvents(annals, first.workspaceKey, [event('1'), event('2'), event('3')])
    await sendEvents(annals, second.workspaceKey, [event('4')])
    await until(() => actionsOf(source).length === 4)
    ids.push(...source.frames.map(({ id }) => id))
  }
  await sendEvents(annals, second.workspaceKey, [event('5')])
  // Resuming from any position repeats everything after it, and nothing twice.
  for (const [index, lastId] of ids.entries()) {
    await using source = await openSource(annals, owner, { lastId })
    await until(() => actionsOf(source).length === 5 - index)
    assert.deepEqual(actionsOf(source).toSorted(), ['1', '2', '3', '4', '5'].slice(index))
    assert.equal(source.frames[0]?.event, 'open')
  }
})

test('a position that is too old, of another member or invalid is reported as a gap', async () => {
  const tenant = await annals.createCompany()
  const owner = await signInAs(annals, tenant, 'OWNER')
  const other = await signInAs(annals, tenant, 'OWNER')
  let lastId = ''
  {
    await using source = await openSource(annals, owner)
    await until(() => named('open')(source))
    lastId = source.lastId()
  }
  const tries: [typeof owner, string, string][] = [
    [other, lastId, ''],
    [owner, lastId, '?category=c'],
    [owner, 'made-up', ''],
    [owner, `${lastId}A`, ''],
  ]
  for (const [member, id, query] of tries) {
    await using source = await openSource(annals, member, { lastId: id, query })
    assert.equal(source.status, 200)
    await until(() => named('gap')(source))
  }
  const bulk = Array.from({ length: 500 }, (_, nth) => event(`bulk ${nth}`))
  for (let times = 0; times < 3; times += 1) await sendEvents(annals, tenant.workspaceKey, bulk)
  await using source = await openSource(annals, owner, { lastId })
  await until(() => named('gap')(source))
  await sendEvents(annals, tenant.workspaceKey, [event('after')])
  await until(() => actionsOf(source).length > 0)
  assert.deepEqual(actionsOf(source), ['after'])
})

test('a member can have five streams, and a closed one makes room', async () => {
  const tenant = await annals.createCompany()
  const owner = await signInAs(annals, tenant, 'OWNER')
  await using stack = new AsyncDisposableStack()
  const sources: Source[] = []
  for (let nth = 0; nth < 5; nth += 1) {
    sources.push(stack.use(await openSource(annals, owner)))
    assert.equal(sources.at(-1)?.status, 200)
  }
  const sixth = stack.use(await openSource(annals, owner))
  assert.equal(sixth.status, 429)
  await until(() => sixth.body() !== '')
  assert.equal(JSON.parse(sixth.body()).code, 'rate_limited')
  await sources[0]?.[Symbol.asyncDispose]()
  await eventually(async () => {
    const again = stack.use(await openSource(annals, owner))
    assert.equal(again.status, 200)
  })
  const colleague = stack.use(await openSource(annals, await signInAs(annals, tenant, 'OWNER')))
  assert.equal(colleague.status, 200)
})

test('opening a live tail counts toward its company’s share of the main thread', async () => {
  const tenant = await annals.createCompany()
  const owner = await signInAs(annals, tenant, 'OWNER')
  const terms = Array.from({ length: 20 }, (_, nth) => `metadata.k=${'v'.repeat(200)}${nth}`)
  const costs: number[] = []
  for (let nth = 0; nth < 10; nth += 1) {
    const usedBeforeMs = requestShare.usedMs(tenant.company.id)
    await using source = await openSource(annals, owner, { query: `?${terms.join('&')}` })
    costs.push(requestShare.usedMs(tenant.company.id) - usedBeforeMs)
    assert.equal(source.status, 200)
  }
  // Usage decays with time, so a slow machine measures less.
  assert(Math.max(...costs) > 1.5, `an opening cost ${Math.max(...costs)} ms`)
})

test('a client that reads too slowly misses events and gets a gap when it reads again', async () => {
  const tenant = await annals.createCompany()
  const owner = await signInAs(annals, tenant, 'OWNER')
  await using slow = await openSource(annals, owner)
  await until(() => named('open')(slow))
  slow.pause()
  const metadata = { text: 'x'.repeat(200_000) }
  for (let nth = 0; nth < 80; nth += 1) {
    const body = { ...event(`${nth}`), metadata }
    const { status } = await annals.call('POST', '/v1/events', { key: tenant.workspaceKey, body })
    assert.equal(status, 201)
  }
  slow.resume()
  await until(() => named('gap')(slow))
  assert(actionsOf(slow).length < 80)
  await sendEvents(annals, tenant.workspaceKey, [event('after')])
  await until(() => actionsOf(slow).includes('after'))
})

test('a stream ends when the session ends or a workspace is revoked', async () => {
  const tenant = await annals.createCompany({ workspaces: ['First', 'Second'] })
  const ids = tenant.workspaces.map(({ id }) => id)
  const leaving = await signInAs(annals, tenant, 'VIEWER', ids)
  const restricted = await signInAs(annals, tenant, 'VIEWER', ids)
  const staying = await signInAs(annals, tenant, 'VIEWER', ids)
  await using left = await openSource(annals, leaving)
  await using less = await openSource(annals, restricted)
  await using stays = await openSource(annals, staying)
  await db.deleteFrom('user_session').where('user_id', '=', leaving.userId).execute()
  await db
    .deleteFrom('user_workspace')
    .where('user_id', '=', restricted.userId)
    .where('workspace_id', '=', ids[1] ?? '')
    .execute()
  await until(() => left.isOver() && less.isOver())
  assert(named('end')(left) && named('end')(less))
  assert(!stays.isOver())
  // A stream doesn't count as use of a session, which ends after half an hour without use.
  advance(31 * 60_000)
  await until(() => stays.isOver())
})

test('a service that stops ends its streams immediately', async () => {
  const app = await startTestApp()
  const tenant = await app.createCompany()
  const owner = await signInAs(app, tenant, 'OWNER')
  await using source = await openSource(app, owner)
  await until(() => named('open')(source))
  await within(5_000, app[Symbol.asyncDispose]())
  await until(() => source.isOver())
})

test('events of another node also arrive within a second', async () => {
  await using api = await startTestApp({ role: 'api', databaseUrl: annals.database.url })
  const tenant = await annals.createCompany()
  const owner = await signInAs(annals, tenant, 'OWNER')
  await using source = await openSource({ ...api, database: annals.database }, owner)
  await until(() => named('open')(source))
  await sendEvents(annals, tenant.workspaceKey, [event('from elsewhere')])
  await eventuallyWithin(1_000, () => assert.deepEqual(actionsOf(source), ['from elsewhere']))
})

test('shows each event once when the archiver moves events that were not yet read', async () => {
  const { company, workspace, workspaceKey } = await annals.createCompany()
  const actions = Array.from({ length: 12 }, (_, nth) => event(`number ${nth + 1}`))
  await sendEvents(annals, workspaceKey, actions)
  await removeUpTo(annals, workspace.id, 8)
  const setHead = (seq: number) =>
    query(
      annals.database.connection,
      `update chain_head set seq = ${seq} where workspace_id = '${workspace.id}'`,
    )
  // Simulates two events that arrive after the reader has read the head.
  await setHead(10)
  const seen: number[] = []
  await using tail = new LiveTail({ db, logger: createLogger('silent') })
  const stop = tail.follow({
    companyId: company.id,
    userId: newId<'user'>(),
    filter: NO_FILTER,
    positions: new Map([[workspace.id, 4]]),
    isStalled: () => false,
    onEvents: (events) => void seen.push(...events.map(({ seq }) => seq)),
    onGap: () => {},
    onReplaced: () => {},
  })
  await until(() => seen.length > 0)
  await setHead(12)
  await sendEvents(annals, workspaceKey, [event('number 13')])
  await until(() => seen.includes(13))
  stop()
  assert.deepEqual(seen, [9, 10, 11, 12, 13])
})
