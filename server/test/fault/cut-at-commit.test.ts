import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { eventually } from '../harness/timing/eventually.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { assertLedgerHolds } from '../harness/event/ledger-oracle.ts'
import { assertPromptResponses, Load } from '../harness/event/load.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

/** The name of the writer's only statement, which is in every message that sends it. */
const APPEND = 'append-events'
/** The last statement of the locked path, as it appears in the protocol. */
const COMMIT = 'commit\0'
const LOCK = 'lock-heads'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const database = stack.use(await cloneDatabase())
const proxy = stack.use(await PgProxy.listen(database.connection))
// Without the workers, so that only the writer is cut at a commit.
const cutOff = stack.use(
  await startTestApp({
    role: 'api',
    databaseUrl: proxy.urlTo(database.connection),
    timeoutFactor: 1,
  }),
)
const workspaces = ['A', 'B', 'C', 'D'] as const

/** Cuts the writer of `cutOff` repeatedly, each time under load. */
async function cutUnder(load: Load, text: string, when: 'before' | 'after' | 'silent') {
  await repeatFault(async () => {
    await load.waitForProgress()
    const before = load.failed
    proxy.cutOnceAt(text, when)
    await eventually(() => assert(!proxy.isArmed))
    await load.waitForFailures(before)
  })
  await load.waitForProgress()
}

test('a connection cut before the batch reaches the server stores nothing of it', async () => {
  const { workspaces: targets } = await cutOff.createCompany({ workspaces })
  await using load = new Load({ url: () => cutOff.url, targets })
  await cutUnder(load, APPEND, 'before')
  await load.stop()
  assertPromptResponses(load)
  await assertLedgerHolds(database.connection, [load])
  assert(!load.attempts.some(({ status }) => status === 200), load.describe())
})

test('a connection cut during a commit duplicates nothing: retries find the stored events', async () => {
  const { workspaces: targets } = await cutOff.createCompany({ workspaces })
  await using load = new Load({ url: () => cutOff.url, targets })
  await cutUnder(load, APPEND, 'after')
  await load.stop()
  assertPromptResponses(load)
  await assertLedgerHolds(database.connection, [load])
  assert(
    load.attempts.some(({ status }) => status === 200),
    load.describe(),
  )
})

for (const { text, when, moment } of [
  { text: COMMIT, when: 'before', moment: 'before its commit' },
  { text: COMMIT, when: 'after', moment: 'while it commits' },
  { text: LOCK, when: 'after', moment: 'while it holds the locks' },
  { text: LOCK, when: 'silent', moment: 'for good, without a word, while it holds the locks' },
] as const) {
  test(`if one of two nodes on the same workspaces is cut off ${moment}, the other continues and nothing is lost`, async () => {
    await using other = await startTestApp({ databaseUrl: database.url })
    const { workspaces: targets } = await cutOff.createCompany({ workspaces })
    await using load = new Load({ url: () => cutOff.url, targets, clients: 12 })
    await using otherLoad = new Load({ url: () => other.url, targets, clients: 12 })
    await cutUnder(load, text, when)
    await Promise.all([load.stop(), otherLoad.stop()])
    assertPromptResponses(load)
    assert.equal(otherLoad.failed, 0, otherLoad.describe())
    await assertLedgerHolds(database.connection, [load, otherLoad])
  })
}

test('a node that loses the network while it holds locks does not block the others', async () => {
  await using other = await startTestApp({ databaseUrl: database.url })
  const { workspaces: targets } = await cutOff.createCompany({ workspaces })
  await using load = new Load({ url: () => cutOff.url, targets, clients: 12 })
  await using otherLoad = new Load({ url: () => other.url, targets, clients: 12 })
  await repeatFault(async () => {
    await load.waitForProgress()
    proxy.cutOnceAt(LOCK, 'silent')
    await eventually(() => assert(!proxy.isArmed))
    proxy.mode = 'stall'
    await otherLoad.waitForProgress()
    proxy.mode = 'pass'
    await load.waitForProgress()
  })
  await Promise.all([load.stop(), otherLoad.stop()])
  assert.equal(otherLoad.failed, 0, otherLoad.describe())
  await assertLedgerHolds(database.connection, [load, otherLoad])
})
