import type { Static } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { DayCheckpoint } from '../../../ledger/tree/checkpoint-day-store.ts'
import type { VerifyRun } from '../../../outlet/verify/verify-run.ts'
import { findVerifyRun } from '../../../outlet/verify/verify-run-store.ts'
import { parseId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { listMemberEmails } from '../../../tenancy/member/member-email-store.ts'
import { canSeeWorkspace, type Viewer } from '../../../tenancy/viewer.ts'
import type { VerifyRunRecord } from '../../schema/dashboard/integrity.ts'

type RunRecord = Static<typeof VerifyRunRecord>

/** Formats runs, each with who started it. */
export async function verifyRunRecords(
  db: Queryable,
  { companyId }: Viewer,
  runs: readonly VerifyRun[],
): Promise<RunRecord[]> {
  const userIds = [...new Set(runs.flatMap(({ createdBy }) => createdBy ?? []))]
  const emails = await listMemberEmails(db, { companyId, userIds })
  return runs.map((run) => recordOf(run, emails))
}

export async function verifyRunRecord(
  db: Queryable,
  viewer: Viewer,
  run: VerifyRun,
): Promise<RunRecord> {
  const [record] = await verifyRunRecords(db, viewer, [run])
  if (!record) throw new ApiError('not_found')
  return record
}

function recordOf(run: VerifyRun, emails: ReadonlyMap<string, string>): RunRecord {
  const { createdBy, covered } = run
  const email = createdBy === null ? null : (emails.get(createdBy) ?? null)
  return {
    id: run.id,
    workspaceId: run.workspaceId,
    status: run.status,
    checked: run.checked,
    total: run.total,
    from: run.period?.from.toISOString() ?? null,
    to: run.period?.to.toISOString() ?? null,
    firstSeq: covered?.range?.firstSeq ?? null,
    lastSeq: covered?.range?.lastSeq ?? null,
    checkpoint: covered?.checkpoint ? checkpointRecord(covered.checkpoint) : null,
    createdBy: run.isScheduled ? { kind: 'SCHEDULE', email: null } : { kind: 'MEMBER', email },
    verdict: run.verdict,
    badSeq: run.badSeq,
    badEventId: run.badEventId,
    createdAt: run.createdAt.toISOString(),
    finishedAt: run.finishedAt?.toISOString() ?? null,
  }
}

export function checkpointRecord({ size, root, note, vkey, signedAt }: DayCheckpoint) {
  return { size, root: root.toString('base64'), note, vkey, signedAt: signedAt.toISOString() }
}

/** Returns the run with this ID if the member can see its workspace. */
export async function getVisibleRun(db: Queryable, viewer: Viewer, id: string): Promise<VerifyRun> {
  const runId = parseId<'verify-run'>(id)
  const run = runId && (await findVerifyRun(db, { companyId: viewer.companyId, id: runId }))
  if (!run || !canSeeWorkspace(viewer, run.workspaceId)) throw new ApiError('not_found')
  return run
}
