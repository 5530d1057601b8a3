import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { DailyBytes } from '../../src/intake/daily-bytes.ts'
import { Writer } from '../../src/intake/writer.ts'
import { PLAN_TERMS } from '../../src/tenancy/plans.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { noteActivity } from '../../src/platform/scheduling/time-slice.ts'
import { readPendingIo } from '../../src/platform/time/deadline.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { pendingItem } from '../harness/event/pending-item.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())

const openWriter = (options: { dailyBytes?: DailyBytes } = {}) =>
  new Writer({
    ...options,
    connection: annals.database.connection,
    clock: Date.now,
    logger: createLogger('silent'),
    metrics: annals.app.metrics,
  })

const workspaceOf = ({ company, workspace }: CreatedCompany) => ({
  companyId: company.id,
  workspaceId: workspace.id,
})

test('only stored events count toward the daily limit', async () => {
  const company = await annals.createCompany()
  const { bytesPerDayMax } = PLAN_TERMS.FREE
  assert(bytesPerDayMax)
  const dailyBytes = new DailyBytes(() => 0)
  await using writer = openWriter({ dailyBytes })
  const ids = workspaceOf(company)
  const caller = { companyId: ids.companyId, plan: 'FREE' } as const
  dailyBytes.add(ids.companyId, bytesPerDayMax - 4_000)
  const key = { keyDigest: 'ab'.repeat(16), bodyCheck: 1 }
  for (const kind of ['stored', 'replayed', 'replayed', 'replayed']) {
    writer.refuseWhenFull(caller)
    assert.equal((await writer.submit(pendingItem(ids, { key }))).kind, kind)
  }
  writer.refuseWhenFull(caller)
  const metadata = JSON.stringify({ text: 'x'.repeat(3_000) })
  assert.equal((await writer.submit(pendingItem(ids, { metadata }))).kind, 'stored')
  assert.throws(() => writer.refuseWhenFull(caller), /as its plan allows per day: 8 GB/)
  writer.refuseWhenFull({ ...caller, plan: 'ENTERPRISE' })
})

const LARGE_EVENTS = 20
/** Two of the largest events, which have 256 KiB each. */
const PER_COMMIT_MAX = 2

test('an event waits for only a few large events of another company, and those keep their order', async () => {
  const [greedy, other] = [await annals.createCompany(), await annals.createCompany()]
  await using writer = openWriter()
  const metadata = JSON.stringify({ text: 'x'.repeat(250_000) })
  let storedBefore = 0
  const large = Array.from({ length: LARGE_EVENTS }, async () => {
    const outcome = await writer.submit(pendingItem(workspaceOf(greedy), { metadata }))
    storedBefore += 1
    assert(outcome.kind === 'stored')
    return outcome.id
  })
  const { kind } = await writer.submit(pendingItem(workspaceOf(other)))
  assert.equal(kind, 'stored')
  assert(storedBefore <= PER_COMMIT_MAX, `${storedBefore} large events were stored first`)
  const ids = await Promise.all(large)
  assert.deepEqual(ids, ids.toSorted(), 'ids ascend along the chain')
})

/** The longest category and action, in UTF-8. Each is also in an index, and an event has 1 KiB of its own. */
const LONG_NAME = '🧾'.repeat(256)
const LONG_EVENT_BYTES = 1_024 + 2 * 2 * Buffer.byteLength(LONG_NAME)
/** How long a company counts as active after a request. */
const ACTIVE_MS = 1_000

for (const { isActive, shareBytes } of [
  { isActive: false, shareBytes: 512 * 1_024 },
  { isActive: true, shareBytes: 192 * 1_024 },
]) {
  const when = isActive ? 'that is active' : 'that was idle before'
  test(`an event of a company ${when} waits for at most ${shareBytes} bytes of long names of another`, async () => {
    const [greedy, other] = [await annals.createCompany(), await annals.createCompany()]
    await using writer = openWriter()
    let storedBefore = 0
    const startedAtMs = performance.now()
    if (isActive) noteActivity(other.company.id)
    const long = Array.from({ length: 300 }, async () => {
      const { kind } = await writer.submit(pendingItem(workspaceOf(greedy), { name: LONG_NAME }))
      assert.equal(kind, 'stored')
      storedBefore += 1
    })
    const small = writer.submit(pendingItem(workspaceOf(other)))
    // The writer takes its first batch in this turn.
    await readPendingIo()
    const wasPaused = performance.now() - startedAtMs >= ACTIVE_MS
    assert.equal((await small).kind, 'stored')
    const storedMax = Math.floor(shareBytes / LONG_EVENT_BYTES)
    const isInTime = storedBefore <= storedMax || (isActive && wasPaused)
    assert(isInTime, `${storedBefore} events with long names were stored first`)
    await Promise.all(long)
  })
}
