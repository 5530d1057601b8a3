import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { query } from '../harness/database/engine.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { manualClock } from '../harness/timing/clock.ts'

const NODES = 3
const SECONDS = 10
const STEPS_PER_SECOND = 10
/** Of a FREE key. */
const PER_SECOND = 50

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const { clock, advance } = manualClock()
const database = stack.use(await cloneDatabase())
const nodes: TestApp[] = []
for (let nth = 0; nth < NODES; nth += 1) {
  nodes.push(stack.use(await startTestApp({ clock, role: 'api', databaseUrl: database.url })))
}
const [first] = nodes
assert(first)

const exchange = async () => {
  for (const { app } of nodes) await app.exchangeRates()
}
await eventually(async () => {
  const [row] = await query(database.connection, 'select count(*)::int as count from node')
  assert.equal(row?.['count'], NODES)
})

/** Sends `perSecond` calls to each node, and returns how many were accepted, by second. */
async function flood(
  key: string,
  targets: readonly { node: TestApp; perSecond: number }[],
  seconds = SECONDS,
): Promise<number[]> {
  const accepted: number[] = []
  for (let second = 0; second < seconds; second += 1) {
    let count = 0
    for (let step = 0; step < STEPS_PER_SECOND; step += 1) {
      const calls = targets.flatMap(({ node, perSecond }) =>
        Array.from({ length: perSecond / STEPS_PER_SECOND }, () =>
          node.call('GET', '/v1/keys/status', { key }),
        ),
      )
      for (const { status } of await Promise.all(calls)) count += status === 200 ? 1 : 0
      advance(1_000 / STEPS_PER_SECOND)
    }
    accepted.push(count)
    await exchange()
  }
  return accepted
}

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)

function assertWithinPlan(accepted: readonly number[]): void {
  const share = sum(accepted) / (PER_SECOND * accepted.length)
  assert(share >= 0.8 && share <= 1.2, `${share}: ${accepted.join()}`)
}

for (const [name, rates] of [
  ['evenly', [50, 50, 50]],
  ['unevenly', [100, 40, 10]],
  ['through one of them', [150, 0, 0]],
] as const) {
  test(`a key that calls three nodes ${name} at three times its rate gets its plan`, async () => {
    const { workspaceKey: key } = await first.createCompany({ plan: 'FREE' })
    const targets = nodes.map((node, nth) => ({ node, perSecond: rates[nth] ?? 0 }))
    assertWithinPlan(await flood(key, targets))
  })
}

test('a key that stays within its rate on three nodes is never refused', async () => {
  const { workspaceKey: key } = await first.createCompany({ plan: 'FREE' })
  const perSecond = [20, 10, 10]
  const targets = nodes.map((node, nth) => ({ node, perSecond: perSecond[nth] ?? 0 }))
  assert.equal(sum(await flood(key, targets)), 40 * SECONDS)
})

test('a key that moves from three nodes to one gets its whole rate there', async () => {
  const { workspaceKey: key } = await first.createCompany({ plan: 'FREE' })
  await flood(
    key,
    nodes.map((node) => ({ node, perSecond: 50 })),
    5,
  )
  const accepted = await flood(key, [{ node: first, perSecond: 100 }], 10)
  const late = accepted.slice(-5)
  assert(sum(late) >= 0.8 * PER_SECOND * late.length, accepted.join())
})

test('the headers of a shared key say what this node still accepts', async () => {
  const { workspaceKey: key } = await first.createCompany({ plan: 'FREE' })
  await flood(
    key,
    nodes.map((node) => ({ node, perSecond: 50 })),
    5,
  )
  advance(500)
  const { headers } = await first.call('GET', '/v1/keys/status', { key })
  assert.equal(headers.get('ratelimit-limit'), String(PER_SECOND))
  const remaining = Number(headers.get('ratelimit-remaining'))
  assert(remaining < PER_SECOND / 2, String(remaining))
  const calls = Array.from({ length: PER_SECOND }, () =>
    first.call('GET', '/v1/keys/status', { key }),
  )
  const accepted = (await Promise.all(calls)).filter(({ status }) => status === 200)
  assert.equal(accepted.length, remaining)
})

test('a key that is little used is not shared', async () => {
  const { workspaceKey: key } = await first.createCompany({ plan: 'FREE' })
  const countShared = async () =>
    (await query(database.connection, 'select from shared_rate')).length
  // What the tests before have used.
  advance(1_000)
  await exchange()
  const before = await countShared()
  await first.call('GET', '/v1/keys/status', { key })
  advance(1_000)
  await exchange()
  assert.equal(await countShared(), before)
})

test('a shared key keeps its rate after the database’s clock was set back', async () => {
  const { workspaceKey } = await first.createCompany({ plan: 'FREE' })
  const targets = nodes.map((node) => ({ node, perSecond: PER_SECOND }))
  await flood(workspaceKey, targets, 2)
  await query(database.connection, 'update shared_rate set renewed_ms = renewed_ms + 3600000')
  const accepted = await flood(workspaceKey, targets, 4)
  assert(sum(accepted) >= 2 * PER_SECOND, accepted.join())
})
