import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Writer } from '../../src/intake/writer.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { pendingItem } from '../harness/pending-item.ts'
import { startTestApp } from '../harness/start-app.ts'

const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())

const LARGE_EVENTS = 20
/** Two of the largest events, which have 256 KiB each. */
const PER_COMMIT_MAX = 2

test('an event waits for only a few large events of another company, and those keep their order', async () => {
  const [greedy, other] = [await annals.createCompany(), await annals.createCompany()]
  await using writer = new Writer({
    connection: annals.database.connection,
    clock: Date.now,
    logger: createLogger('silent'),
    metrics: annals.app.metrics,
  })
  const workspace = { companyId: greedy.company.id, workspaceId: greedy.workspace.id }
  const metadata = JSON.stringify({ text: 'x'.repeat(250_000) })
  let storedBefore = 0
  const large = Array.from({ length: LARGE_EVENTS }, async () => {
    const outcome = await writer.submit(pendingItem(workspace, { metadata }))
    storedBefore += 1
    assert(outcome.kind === 'stored')
    return outcome.id
  })
  const small = { companyId: other.company.id, workspaceId: other.workspace.id }
  const { kind } = await writer.submit(pendingItem(small))
  assert.equal(kind, 'stored')
  assert(storedBefore <= PER_COMMIT_MAX, `${storedBefore} large events were stored first`)
  const ids = await Promise.all(large)
  assert.deepEqual(ids, ids.toSorted(), 'ids ascend along the chain')
})
