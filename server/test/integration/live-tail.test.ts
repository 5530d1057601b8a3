import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { type Follower, LiveTail } from '../../src/outlet/explorer/live-tail/live-tail.ts'
import { type CompanyId, newId, type WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { sendEvents } from '../harness/dashboard/explorer.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const startTail = () => new LiveTail({ db: annals.app.database.db, logger: createLogger('silent') })

type Recorded = Follower & { seen: (number | 'gap')[] }

/** Follows one chain from its start. */
function record(
  { companyId, workspaceId }: { companyId: CompanyId; workspaceId: WorkspaceId },
  options: Partial<Follower> = {},
): Recorded {
  const seen: Recorded['seen'] = []
  return {
    seen,
    companyId,
    userId: newId<'user'>(),
    filter: NO_FILTER,
    positions: new Map([[workspaceId, 0]]),
    isStalled: () => false,
    onEvents: (events) => void seen.push(...events.map(({ seq }) => seq)),
    onGap: () => void seen.push('gap'),
    onReplaced: () => {},
    ...options,
  }
}

async function createWithEvents({ count, textLength = 0 }: { count: number; textLength?: number }) {
  const { company, workspace, workspaceKey } = await annals.createCompany()
  const metadata = { text: 'x'.repeat(textLength) }
  const events = Array.from({ length: 250 }, () => ({ category: 'c', action: 'a', metadata }))
  for (let sent = 0; sent < count; sent += events.length) {
    await sendEvents(annals, workspaceKey, events)
  }
  return { companyId: company.id, workspaceId: workspace.id, workspaceKey }
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

test('a follower that joins while a chain is read misses none of its events', async () => {
  const chain = await createWithEvents({ count: 500 })
  await using tail = startTail()
  const late = record(chain)
  let stopLate: (() => void) | null = null
  const early = record(chain, {
    onEvents: (events) => {
      early.seen.push(...events.map(({ seq }) => seq))
      // After the first read, so that the reader is already past the start of the chain.
      if (early.seen.length > 150) stopLate ??= tail.follow(late)
    },
  })
  using stops = new DisposableStack()
  stops.defer(tail.follow(early))
  stops.defer(() => stopLate?.())
  await eventually(() => {
    assert.deepEqual(early.seen, upTo(500))
    assert.deepEqual(late.seen, upTo(500))
  })
})

test('followers that cannot keep up get a gap, without delaying another company', async () => {
  const fast = await createWithEvents({ count: 2_000, textLength: 8_000 })
  const calm = await createWithEvents({ count: 250 })
  await using tail = startTail()
  using stops = new DisposableStack()
  const crowd = Array.from({ length: 50 }, () => record(fast))
  for (const follower of crowd) stops.defer(tail.follow(follower))
  const isBehind = () => crowd.every(({ seen }) => !seen.includes('gap') && seen.length < 2_000)
  let wasBehind = false
  const other = record(calm, {
    onEvents: (events) => {
      other.seen.push(...events.map(({ seq }) => seq))
      wasBehind = isBehind()
    },
  })
  stops.defer(tail.follow(other))
  await eventually(() => assert.deepEqual(other.seen, upTo(250)))
  assert(wasBehind, 'the other company did not wait for the crowd')
  const areAllSkipped = () => crowd.every(({ seen }) => seen.at(-1) === 'gap')
  await eventually(() => assert(areAllSkipped()))
  for (const { seen, positions } of crowd) {
    assert.deepEqual(seen, [...upTo(seen.length - 1), 'gap'])
    assert.equal(positions.get(fast.workspaceId), 2_000)
  }
})

test('a stalled follower gets a gap instead of events, and the others get the events', async () => {
  const chain = await createWithEvents({ count: 250 })
  await using tail = startTail()
  using stops = new DisposableStack()
  const stalled = record(chain, { isStalled: () => true })
  const reading = record(chain)
  stops.defer(tail.follow(stalled))
  stops.defer(tail.follow(reading))
  await eventually(() => assert.deepEqual(reading.seen, upTo(250)))
  assert(stalled.seen.length > 0 && stalled.seen.every((seen) => seen === 'gap'))
  assert.equal(stalled.positions.get(chain.workspaceId), 250)
})

test('a follower gets a gap, then new events, after the database was restored from a backup', async () => {
  const chain = await createWithEvents({ count: 250 })
  await using tail = startTail()
  // It has received 300 events, and the backup has 250 of them.
  const ahead = record(chain, { positions: new Map([[chain.workspaceId, 300]]) })
  using _stop = { [Symbol.dispose]: tail.follow(ahead) }
  await eventually(() => assert.deepEqual(ahead.seen, ['gap']))
  await sendEvents(annals, chain.workspaceKey, [{ category: 'c', action: 'a' }])
  await eventually(() => assert.deepEqual(ahead.seen, ['gap', 251]))
})

test('on a full node, a company replaces the oldest live tail of the one with the most', async () => {
  await using tail = new LiveTail({ db: annals.app.database.db, logger: createLogger('silent') })
  const replaced: string[] = []
  const followOnce = (company: string) => {
    const companyId = companyIds.get(company) ?? newId<'company'>()
    companyIds.set(company, companyId)
    const onReplaced = () => void replaced.push(company)
    tail.follow(record({ companyId, workspaceId: newId<'workspace'>() }, { onReplaced }))
  }
  const companyIds = new Map<string, CompanyId>()
  const isRefused = { code: 'overloaded' }
  for (const company of ['a', 'b', 'c', 'd']) {
    for (let nth = 0; nth < 50; nth += 1) followOnce(company)
  }
  assert.throws(() => followOnce('a'), isRefused)
  followOnce('e')
  assert.deepEqual(replaced, ['a'])
  assert.throws(() => followOnce('a'), isRefused, 'no other company has at least two more')
  followOnce('e')
  followOnce('f')
  assert.deepEqual(replaced, ['a', 'b', 'c'])
})
