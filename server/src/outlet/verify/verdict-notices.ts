import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import type { NoticeDraft } from '../../tenancy/notice/notice.ts'
import type { VerifyOutcome } from './verify-outcome.ts'

/**
 * A notice if the chain doesn't hold or couldn't be verified. Verifying a broken chain again finds the same
 * event, which is the same cause. `run` identifies the verification.
 */
export function verdictNotices(
  { companyId, workspaceId }: { companyId: CompanyId; workspaceId: WorkspaceId },
  {
    status,
    verdict,
    badSeq,
    isRestoring = false,
  }: Pick<VerifyOutcome, 'status' | 'verdict' | 'badSeq' | 'isRestoring'>,
  run: string,
): NoticeDraft[] {
  const draft = { companyId, workspaceId, link: '/app/integrity', message: verdict }
  if (status === 'BROKEN') {
    return [{ ...draft, kind: 'CHAIN_BROKEN', cause: `${workspaceId}:${badSeq ?? ''}` }]
  }
  if (status === 'FAILED' && !isRestoring)
    return [{ ...draft, kind: 'VERIFY_FAILED', cause: `${workspaceId}:${run}` }]
  return []
}
