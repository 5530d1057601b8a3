import assert from 'node:assert/strict'
import { createServiceAudit } from '../../../src/intake/audit-entry.ts'
import { TreeCheck } from '../../../src/outlet/proof/check-tree.ts'
import type { VerifyRun } from '../../../src/outlet/verify/verify-run.ts'
import { findVerifyRun, insertVerifyRun } from '../../../src/outlet/verify/verify-run-store.ts'
import {
  type SignedTrees,
  startVerifyWorker,
} from '../../../src/outlet/verify/verify-run-worker.ts'
import { type CompanyId, newId, type WorkspaceId } from '../../../src/platform/id.ts'
import { createLogger } from '../../../src/platform/logger.ts'
import type { TestApp } from '../app/start-app.ts'
import { eventually } from '../timing/eventually.ts'
import { createSigner } from './proof.ts'

type Chain = { companyId: CompanyId; workspaceId: WorkspaceId }

function signedTrees(annals: TestApp): SignedTrees {
  const { db } = annals.app.database
  const signer = createSigner(annals)
  return {
    listKeys: () => signer.listKeys(),
    openTree: (archive, workspaceId) =>
      TreeCheck.open({ db, archive, workspaceId, listKeys: () => signer.listKeys() }),
  }
}

/** Runs a verification of a period, or of all events, as the worker does, and returns its result. */
export async function verifyNow(
  annals: TestApp,
  { companyId, workspaceId }: Chain,
  period: VerifyRun['period'],
): Promise<VerifyRun> {
  const { archive, database } = annals.app
  const { pool, db } = database
  const createdBy = newId<'user'>()
  const started = { companyId, workspaceId, total: 0, period, createdBy, now: new Date() }
  const run = await insertVerifyRun(db, started)
  const clock = Date.now
  const audit = createServiceAudit(clock)
  const deps = { pool, db, archive, clock, logger: createLogger('silent'), audit }
  await using worker = startVerifyWorker({ ...deps, signed: signedTrees(annals) })
  worker.wake()
  return await eventually(async () => {
    const found = await findVerifyRun(db, run)
    assert(found && found.status !== 'RUNNING')
    return found
  })
}
