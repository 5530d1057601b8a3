import { ApiError } from '../../../errors.ts'
import type { VerifyRun } from '../../../outlet/verify/verify-run.ts'
import { findVerifyRun } from '../../../outlet/verify/verify-run-store.ts'
import { parseId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { canSeeWorkspace, type Viewer } from '../../../tenancy/viewer.ts'

export function verifyRunRecord(run: VerifyRun) {
  return {
    id: run.id,
    workspaceId: run.workspaceId,
    status: run.status,
    checked: run.checked,
    total: run.total,
    verdict: run.verdict,
    badSeq: run.badSeq,
    badEventId: run.badEventId,
    createdAt: run.createdAt.toISOString(),
    finishedAt: run.finishedAt?.toISOString() ?? null,
  }
}

/** Returns the run in a path if the member can see its workspace. */
export async function getVisibleRun(db: Queryable, viewer: Viewer, id: string): Promise<VerifyRun> {
  const runId = parseId<'verify-run'>(id)
  const run = runId && (await findVerifyRun(db, { companyId: viewer.companyId, id: runId }))
  if (!run || !canSeeWorkspace(viewer, run.workspaceId)) throw new ApiError('not_found')
  return run
}
