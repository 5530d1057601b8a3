import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { recomputeHash } from '../../src/ledger/chain.ts'
import { listChainRun } from '../../src/ledger/event-store.ts'
import { TreeCheck } from '../../src/outlet/proof/check-tree.ts'
import type { VerifyRun } from '../../src/outlet/verify/verify-run.ts'
import { findVerifyRun, insertVerifyRun } from '../../src/outlet/verify/verify-run-store.ts'
import { type SignedTrees, startVerifyWorker } from '../../src/outlet/verify/verify-run-worker.ts'
import { type CompanyId, newId, type WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { archiveAll, listFiles } from '../harness/archive/archive.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { createSigner, signWhole } from '../harness/proof/proof.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const HOUR_MS = 3_600_000
const START_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 48 * HOUR_MS
let nowMs = START_MS
const annals = await startTestApp({
  role: 'api',
  clock: () => nowMs,
  env: { ANNALS_RATE_LIMITS: 'off' },
})
after(() => annals[Symbol.asyncDispose]())
const { pool, db } = annals.app.database
const { archive } = annals.app
const signer = createSigner(annals)
const signed: SignedTrees = {
  listKeys: () => signer.listKeys(),
  openTree: (storage, id) => TreeCheck.open({ db, archive: storage, workspaceId: id }),
}
const logger = createLogger('silent')
const audit = createServiceAudit(Date.now)

function hours(from: number, to: number) {
  const at = (hour: number) => new Date(START_MS + hour * HOUR_MS)
  return { from: at(from), to: at(to) }
}

async function runOf(
  period: VerifyRun['period'],
  chain: { companyId: CompanyId; workspaceId: WorkspaceId },
): Promise<VerifyRun> {
  const started = { ...chain, total: 0, period, createdBy: newId<'user'>(), now: new Date() }
  const run = await insertVerifyRun(db, started)
  await using worker = startVerifyWorker({
    pool,
    db,
    archive,
    clock: Date.now,
    logger,
    audit,
    signed,
  })
  worker.wake()
  return await eventually(async () => {
    const found = await findVerifyRun(db, run)
    assert(found && found.status !== 'RUNNING')
    return found
  })
}

test('a workspace without events holds, and one whose signed events are gone does not', async () => {
  const { company, workspace, workspaceKey: key } = await annals.createCompany()
  const other = { companyId: company.id, workspaceId: workspace.id }
  await signWhole(signer, workspace.id)
  for (const period of [null, hours(0, 20)]) {
    assert.equal((await runOf(period, other)).status, 'HOLDS')
  }
  await annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })
  await signWhole(signer, workspace.id)
  await asOwner(annals, async (owner) => {
    const { id } = workspace
    await sql`delete from event where workspace_id = ${id}`.execute(owner)
    await sql`update chain_head set seq = 0, hash = ${'0'.repeat(64)}, last_id = null
               where workspace_id = ${id}`.execute(owner)
  })
  for (const period of [null, hours(0, 20)]) {
    assert.equal((await runOf(period, other)).status, 'BROKEN')
  }
})

test('a run finds a rewritten event that was archived after others had been signed', async () => {
  const { company, workspace, workspaceKey: key } = await annals.createCompany()
  const { id } = workspace
  const send = async (first: number, last: number) => {
    for (let hour = first; hour <= last; hour += 1) {
      nowMs = START_MS + hour * HOUR_MS + 60_000
      const body = { category: 'c', action: `a${hour}` }
      assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 201)
    }
  }
  await send(0, 3)
  await signWhole(signer, id)
  const { entries } = await listChainRun(db, { workspaceId: id, afterSeq: 3, limit: 1 })
  const [last = assert.fail()] = entries.map(({ event }) => event)
  const recomputed = recomputeHash({ ...last, action: 'forged' })
  assert(recomputed.ok)
  await asOwner(annals, async (owner) => {
    const bytes = Buffer.from(recomputed.hash, 'hex')
    await sql`update event set action = 'forged', hash = ${bytes}
               where workspace_id = ${id} and seq = 4`.execute(owner)
    await sql`update chain_head set hash = ${recomputed.hash} where workspace_id = ${id}`.execute(
      owner,
    )
  })
  await send(4, 7)
  await archiveAll(annals)
  assert.equal(listFiles(annals, id).length, 1)
  for (const period of [null, hours(0, 10), hours(0, 3.5)]) {
    const { status } = await runOf(period, { companyId: company.id, workspaceId: id })
    assert.equal(status, 'BROKEN')
  }
})
