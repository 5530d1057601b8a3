import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { assertLedgerHolds } from '../harness/event/ledger-oracle.ts'
import { Load } from '../harness/event/load.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const NODES = 4
const WORKSPACES = 20
const CLIENTS_PER_NODE = 8
const TRIES_MAX = 5

test('four nodes writing to the same twenty workspaces fail no call and retry no batch more than four times', async () => {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await cloneDatabase())
  const nodes: TestApp[] = []
  for (let nth = 0; nth < NODES; nth += 1) {
    const env = { ANNALS_METRICS_PORT: '0' }
    nodes.push(stack.use(await startTestApp({ databaseUrl: database.url, env })))
  }
  const [first] = nodes
  assert(first)
  const [name, ...names] = Array.from({ length: WORKSPACES }, (_, nth) => `Workspace ${nth}`)
  assert(name)
  const { workspaces: targets } = await first.createCompany({ workspaces: [name, ...names] })
  const loads = nodes.map(({ url }) =>
    stack.use(new Load({ url: () => url, targets, clients: CLIENTS_PER_NODE })),
  )
  await repeatFault(async () => {
    await Promise.all(loads.map((load) => load.waitForProgress(300)))
  })
  await Promise.all(loads.map((load) => load.stop()))
  for (const load of loads) assert.equal(load.failed, 0, load.describe())
  const tries = await Promise.all(nodes.map(readTries))
  assert(
    tries.some(({ again }) => again > 0),
    'the nodes conflicted',
  )
  for (const { above } of tries) assert.equal(above, 0)
  await assertLedgerHolds(database.connection, loads)
})

/** How many batches were retried, and how many more often than allowed. */
async function readTries({ app }: TestApp): Promise<{ again: number; above: number }> {
  const text = await (await fetch(`${app.metricsUrl}/metrics`)).text()
  const upTo = (bound: string): number => {
    const name = `annals_batch_try_count_bucket{le="${bound}"}`
    const line = text.split('\n').find((each) => each.startsWith(name))
    assert(line, text)
    return Number(line.split(' ').at(-1))
  }
  return { again: upTo('+Inf') - upTo('1'), above: upTo('+Inf') - upTo(String(TRIES_MAX)) }
}
