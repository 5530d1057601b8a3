import assert from 'node:assert/strict'
import { test } from 'node:test'
import { archiveAll } from '../harness/archive/archive.ts'
import { readFeed } from '../harness/event/feed.ts'
import { assertChainsHold } from '../harness/event/ledger.ts'
import { isAccepted, Load } from '../harness/event/load.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'

const CLIENTS_PER_NODE = 4
const EVENTS_PER_ROUND = 150
const ROUNDS = 3

test('three readers on two nodes get every event once and in order while both write and an archiver moves rows', async () => {
  await using stack = new AsyncDisposableStack()
  const first = stack.use(await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } }))
  const env = { ANNALS_RATE_LIMITS: 'off', ANNALS_ARCHIVE_URL: first.archiveUrl }
  const second = stack.use(await startTestApp({ databaseUrl: first.database.url, env }))
  const { workspace, workspaces, workspaceKey: key } = await first.createCompany()
  const loads = [first, second].map(({ url }) =>
    stack.use(new Load({ url: () => url, targets: workspaces, clients: CLIENTS_PER_NODE })),
  )
  let isWriting = true
  /** Reads until the writers have stopped and the feed has ended. */
  const follow = async (node: TestApp, limit: number, waitSeconds: number): Promise<string[]> => {
    const ids: string[] = []
    for (;;) {
      const isLast = !isWriting
      const parameters = { after: ids.length, limit, waitSeconds }
      const reader = { key, workspaceId: workspace.id }
      const { status, json, text } = await readFeed(node, reader, parameters)
      assert.equal(status, 200, text)
      for (const { seq, id } of json.data) assert.equal(seq, ids.push(id), 'no gap, no repeat')
      assert.equal(json.next, ids.length)
      if (isLast && json.data.length === 0) return ids
    }
  }
  const readers = Promise.all([
    follow(first, 40, 1),
    follow(second, 1_000, 1),
    // So slow that it reads from the archive.
    follow(second, 10, 0),
  ])
  readers.catch(() => {})
  let archived = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    await Promise.all(loads.map((load) => load.waitForProgress(EVENTS_PER_ROUND)))
    const report = await archiveAll(first)
    assert.equal(report.failed, 0)
    archived += report.events
  }
  assert(archived > EVENTS_PER_ROUND, 'the archiver moved events')
  await Promise.all(loads.map((load) => load.stop()))
  for (const load of loads) assert.equal(load.failed, 0, load.describe())
  isWriting = false
  const [seen, ...others] = await readers
  // From the first event, so that it reads what the archiver moved.
  others.push(await follow(first, 100, 0))
  for (const other of others) assert.deepEqual(other, seen)
  const stored = loads.flatMap(({ attempts }) => attempts.filter(isAccepted).map(({ id }) => id))
  assert.equal(seen.length, stored.length)
  assert.deepEqual(new Set(seen), new Set(stored))
  assert.equal(await assertChainsHold(first), seen.length)
})
