import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { OperatorError } from '../../src/errors.ts'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { commandEnv } from '../harness/app/command-env.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { lockTable, readAllRows } from '../harness/database/backup.ts'
import { query } from '../harness/database/engine.ts'
import { createEmptyDatabase, type TestDatabase, urlOf } from '../harness/database/template-db.ts'
import { assertPromptResponses, isAccepted, Load } from '../harness/event/load.ts'
import {
  createSigner,
  readCheckpoint,
  sendEvents,
  signEvents,
  signWhole,
} from '../harness/proof/proof.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const SERVICE = { ANNALS_RATE_LIMITS: 'off', ...ANY_DESTINATION }
/** The promise for the last step. */
const STOP_SECONDS_MAX = 30

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())

/** A running service with archived, signed and hot events, and with deliveries that fail. */
const opening = openSource()
opening.catch(() => {}) // Each test awaits it.

async function openSource() {
  const annals = stack.use(await startTestApp({ env: SERVICE }))
  const tenant = await annals.createCompany({ workspaces: ['First', 'Second'] })
  const [first, second] = tenant.workspaces
  assert(first && second)
  await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:9/' })
  for (const { workspaceKey } of tenant.workspaces) await sendEvents(annals, workspaceKey, 300)
  await signEvents(annals, second.id)
  const before = new Date(Date.now() + 1_000).toISOString()
  const archived = await runCommandInHost(['archive', '--before', before], commandEnv(annals))
  assert.equal(archived.code, 0, archived.stderr)
  await sendEvents(annals, second.workspaceKey, 20)
  await signEvents(annals, first.id)
  return { annals, first, second, target: stack.use(await createEmptyDatabase()) }
}

const move = (source: TestApp, to: string) =>
  new AnnalsProcess(['move', '--to', to], commandEnv(source))

const moveInHost = (source: Parameters<typeof commandEnv>[0], ...args: string[]) =>
  runCommandInHost(['move', ...args], commandEnv(source))

const send = (annals: TestApp, key: string) =>
  annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })

async function assertAccepts(annals: TestApp, key: string): Promise<void> {
  await eventually(async () => assert.equal((await send(annals, key)).status, 201))
}

const startRefusal = async (databaseUrl: string): Promise<string> => {
  const error: unknown = await startTestApp({ databaseUrl, role: 'api' }).then(
    () => null,
    (reason: unknown) => reason,
  )
  assert(error instanceof OperatorError, String(error))
  return error.message
}

const countOf = async ({ connection }: Pick<TestDatabase, 'connection'>, from: string) =>
  Number((await query(connection, `select count(*)::int as n from ${from}`))[0]?.['n'])

const NOT_COMPLETE = /^The move of a ledger to this database is not complete/
const REFUSALS = `pg_trigger where tgname = 'refuse_moved_ledger'`

test('refuses a target that is not empty or lacks rights, and changes neither database', async () => {
  const { annals, first } = await opening
  await using database = await createEmptyDatabase()
  const login = `mover_${randomBytes(6).toString('hex')}`
  await query(database.connection, `create role ${login} login password 'x'`)
  const own = urlOf({ ...database.connection, user: login, password: 'x' })
  const refused = async (to: string, problem: RegExp) => {
    const { code, stderr } = await moveInHost(annals, '--to', to)
    assert.equal(code, 1, stderr)
    assert.match(stderr, problem)
  }
  await refused(annals.database.url, /: the target is not empty, its table \w+ has rows\./)
  await refused(
    'mysql://localhost/annals',
    /^annals: --to must be a URL that starts with postgres:/,
  )
  await refused(
    own.replace(':x@', ':y@'),
    /: can't use the target \(password authentication failed/,
  )
  await refused(own, new RegExp(`: the login ${login} can't create tables in the schema public`))
  await query(database.connection, `grant create on schema public to ${login}`)
  await refused(own, /can neither create roles nor act as annals_serving and annals_keeper\./)
  await query(database.connection, 'create table mine (id integer)')
  await refused(database.url, /: the target is not empty: it has the table mine\./)
  await query(database.connection, `drop owned by ${login}; drop role ${login}`)
  assert.equal(await countOf(database, `pg_tables where schemaname = 'public'`), 1)
  assert.equal(await countOf(annals.database, REFUSALS), 0)
  assert.equal(await countOf(annals.database, 'ledger_move'), 0)
  await assertAccepts(annals, first.workspaceKey)
})

test('after a mover was killed at any moment, the source accepts events, and the next run continues', async () => {
  const { annals, first, second, target } = await opening
  for (let round = 0; round < rounds(0, 8); round += 1)
    await killAtRandom(annals, first.workspaceKey)
  // While the tables are copied.
  {
    const mover = move(annals, target.url)
    await eventually(async () => assert((await countOf(annals.database, REFUSALS)) > 40))
    await using lock = await lockTable(annals.database, 'tree_tile')
    await lock.waiting()
    mover.signal('SIGKILL')
    await mover.exited
  }
  await assertAccepts(annals, first.workspaceKey)
  assert.match(await startRefusal(target.url), NOT_COMPLETE)
  const copied = await countOf(target, 'event')
  assert(copied >= 300)

  // In the last step.
  {
    await using lock = await lockTable(annals.database, 'project')
    const mover = move(annals, target.url)
    await lock.waiting()
    for (const { workspaceKey } of [first, second]) {
      const stopped = await send(annals, workspaceKey)
      assert.deepEqual([stopped.status, stopped.json.code], [503, 'unavailable'])
      assert.match(stopped.headers.get('retry-after') ?? '', /^[1-9]/)
    }
    const read = await annals.call('GET', '/v1/events', { key: first.workspaceKey })
    assert.equal(read.status, 200)
    mover.signal('SIGKILL')
    await mover.exited
    await assertAccepts(annals, first.workspaceKey)
  }
})

async function killAtRandom(annals: TestApp, key: string): Promise<void> {
  await using target = await createEmptyDatabase()
  const mover = move(annals, target.url)
  const { code } = await mover.killWithin(4_000)
  const hasLeft = (await countOf(annals.database, `ledger_move where state = 'LEFT'`)) === 1
  assert(hasLeft || code === null)
  if (!hasLeft) await assertAccepts(annals, key)
  const canceled = await moveInHost(annals, '--cancel', '--to', target.url)
  assert.equal(canceled.code, 0, canceled.stderr)
  await assertAccepts(annals, key)
}

test('a copy with a changed event is never put into use', async () => {
  const { annals, first, target } = await opening
  const setAction = (action: string) =>
    query(
      target.connection,
      `update event set action = '${action}' where workspace_id = '${first.id}' and seq = 5`,
    )
  const lock = await lockTable(target, 'tree_tile')
  const moving = moveInHost(annals, '--to', target.url)
  {
    await using _lock = lock
    await lock.waiting('truncate')
    // The events are copied, and not verified yet.
    await setAction('forged')
  }
  const { code, stderr } = await moving
  assert.equal(code, 1)
  assert.match(stderr, new RegExp(`^annals: The copy of workspace ${first.id} is wrong: event 5: `))
  await assertAccepts(annals, first.workspaceKey)
  await setAction('event 4')
})

test('gives up a last step that takes too long, so that a mover that hangs does not stop the source', async () => {
  const { annals, first, target } = await opening
  const lock = await lockTable(annals.database, 'project')
  const moving = moveInHost(annals, '--to', target.url, '--stop-seconds', '5')
  {
    await using _lock = lock
    await lock.waiting()
    assert.equal((await send(annals, first.workspaceKey)).status, 503)
    await assertAccepts(annals, first.workspaceKey)
  }
  const { code, stderr } = await moving
  assert.equal(code, 1)
  assert.match(stderr, /^annals: The last step took longer than 5 s, so it was given up/)
  await assertAccepts(annals, first.workspaceKey)
})

test('a move during ingest loses nothing and duplicates nothing, and the chains and checkpoints continue', async () => {
  const { annals, first, second, target } = await opening
  let { url } = annals
  await using load = new Load({ url: () => url, targets: [first, second], clients: 3 })
  await load.waitForProgress(20)
  const moving = moveInHost(annals, '--to', target.url, '--json')
  const stoppedAt = load.waitForFailures(0).then(() => performance.now())
  const { code, stdout, stderr } = await moving
  const exitedAt = performance.now()
  await load.stop()
  assert.equal(code, 0, stderr)
  const report = JSON.parse(stdout)
  assert(report.stoppedSeconds < STOP_SECONDS_MAX, stdout)
  assert(exitedAt - (await stoppedAt) < STOP_SECONDS_MAX * 1_000)
  assertPromptResponses(load)
  assert.deepEqual([report.workspaces, report.archivedEvents, report.notes], [3, 300, []])

  // The source doesn't change anymore.
  const [here, there] = [await readAllRows(annals.database), await readAllRows(target)]
  for (const name of ['ledger_move', 'api_key_use']) {
    here.delete(name)
    there.delete(name)
  }
  assert((here.get('webhook_delivery') ?? []).length > 300)
  for (const [name, rows] of here) assert.deepEqual(there.get(name), rows, name)
  assert.equal(await countOf(target, 'ledger_move'), 0)
  assert.equal(await countOf(target, REFUSALS), 0)

  // As if the mover had been killed before it could tell the target that the copy is complete.
  const [mark] = await query(annals.database.connection, 'select id from ledger_move')
  const values = `'${String(mark?.['id'])}', 'ARRIVING', 'the source'`
  await query(target.connection, `insert into ledger_move (id, state, other) values (${values})`)
  assert.match(await startRefusal(target.url), NOT_COMPLETE)
  const finished = await moveInHost(annals, '--to', target.url, '--json')
  assert.equal(finished.code, 0, finished.stderr)
  assert.equal(JSON.parse(finished.stdout).stoppedSeconds, null)

  const env = { ...SERVICE, ANNALS_ARCHIVE_URL: annals.archiveUrl }
  await using copy = await startTestApp({ databaseUrl: target.url, role: 'api', env })
  // The clients repeat what was refused or has no response.
  ;({ url } = copy)
  await load.settle()
  const rows = await query(
    target.connection,
    `select id, metadata::json->>'request' as request from event where category = 'fault'`,
  )
  const idOf = new Map(rows.map(({ id, request }) => [request, id]))
  assert.deepEqual([idOf.size, rows.length], [load.events.length, load.events.length])
  for (const { key, attempts } of load.events) {
    for (const { id } of attempts.filter(isAccepted)) assert.equal(idOf.get(key), id)
  }
  for (const { id } of [first, second]) {
    const before = await readCheckpoint(annals, id)
    assert.equal(await signWhole(createSigner(copy), id), 'done')
    assert(((await readCheckpoint(copy, id))?.size ?? 0) > (before?.size ?? Infinity))
  }
  const source = { database: target, archiveUrl: annals.archiveUrl }
  const verified = await runCommandInHost(['verify'], commandEnv(source))
  assert.equal(verified.code, 0, verified.stdout)
  assert.match(verified.stdout, /every chain is intact\nok: the tiles and checkpoints of 2 signed/)
  const canceled = await moveInHost(annals, '--cancel', '--to', target.url)
  assert.match(canceled.stderr, /^annals: 1 nodes are running on the target/)
})

test('after a move, the source refuses every write and start until the move is canceled', async () => {
  const { annals, first, target } = await opening
  assert.deepEqual((await send(annals, first.workspaceKey)).json.code, 'unavailable')
  await assert.rejects(
    query(annals.database.connection, `update company set plan = 'PRO'`),
    /the ledger was moved to .*\/test_/,
  )
  assert.match(
    await startRefusal(annals.database.url),
    /^This ledger was moved to .*\/test_\w+ at 20/,
  )
  const bootstrapped = await runCommandInHost(['bootstrap', '--json'], commandEnv(annals))
  assert.match(bootstrapped.stderr, /^annals: This ledger was moved to /)
  const again = await moveInHost(annals, '--to', target.url)
  assert.match(again.stderr, /^annals: (?:This ledger was moved to |Nothing was moved)/)

  const withoutTarget = await moveInHost(annals, '--cancel')
  assert.match(withoutTarget.stderr, /Add --to with the address of that database/)
  const late = await moveInHost(annals, '--cancel', '--to', target.url)
  assert.equal(late.code, 1)
  assert.match(late.stderr, /The target has stored events since the move/)
  assert.equal((await send(annals, first.workspaceKey)).status, 503)

  // Back from a second target that is still unused.
  const source = { database: target, archiveUrl: annals.archiveUrl }
  await using next = await createEmptyDatabase()
  const moved = await moveInHost(source, '--to', next.url)
  assert.equal(moved.code, 0, moved.stderr)
  assert.match(
    moved.stdout,
    /^Moved and verified .* of 3 workspaces to .*\nThis database now refuses/,
  )
  const canceled = await moveInHost(source, '--cancel', '--to', next.url)
  assert.equal(canceled.code, 0, canceled.stderr)
  assert.equal(await countOf(target, REFUSALS), 0)
  const { code, stderr } = await runCommandInHost(['bootstrap', '--json'], commandEnv(source))
  assert.equal(code, 0, stderr)
  assert.match(await startRefusal(next.url), NOT_COMPLETE)
})
