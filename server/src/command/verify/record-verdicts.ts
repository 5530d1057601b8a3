import { verdictNotices } from '../../outlet/verify/verdict-notices.ts'
import { auditedOutcome } from '../../outlet/verify/verify-outcome.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import { isOutage, type Queryable } from '../../platform/pg/database.ts'
import { systemClock as clock } from '../../platform/time/clock.ts'
import { raiseNotices } from '../../tenancy/notice/notice-store.ts'
import { auditAsOperator } from '../operator.ts'
import { printNotes } from '../output/print.ts'
import type { WorkspaceResult } from './workspace-result.ts'

type Verdicts = {
  workspaces: readonly { id: WorkspaceId; companyId: CompanyId }[]
  /** In the same order. */
  results: readonly Pick<WorkspaceResult, 'outcome' | 'skipped'>[]
}

type WorkspaceVerdict = Pick<WorkspaceResult, 'outcome' | 'skipped'> & {
  companyId: CompanyId
  workspaceId: WorkspaceId
}

/**
 * Creates notices about chains that don't hold, and writes one audit entry for each company with its verdict, and
 * with the first bad event of its first broken chain. The verdict counts even if the database can't be written to, so a failure is only a message.
 */
export async function recordVerdicts(
  db: Queryable,
  { workspaces, results }: Verdicts,
): Promise<void> {
  const verdicts = workspaces.flatMap(({ id, companyId }, index): WorkspaceVerdict[] => {
    const result = results[index]
    return result ? [{ companyId, workspaceId: id, ...result }] : []
  })
  for (const [companyId, chains] of Map.groupBy(verdicts, (chain) => chain.companyId)) {
    const resource = { type: 'company', id: companyId }
    const entry = { action: 'VERIFY_FINISHED', resource, metadata: summaryOf(chains) } as const
    const run = `command:${new Date(clock()).toISOString()}`
    const notices = chains.flatMap((chain) => verdictNotices(chain, chain.outcome, run))
    try {
      // On its own, because a damaged audit log must not prevent the notice.
      await raiseNotices(db, notices, clock())
      await db.transaction().execute((trx) => auditAsOperator(trx, companyId, [entry]))
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      printNotes(`annals: The verdict is not in the audit log of company ${companyId}: ${reason}`)
      if (isOutage(error)) return
    }
  }
}

function summaryOf(chains: readonly WorkspaceVerdict[]): Record<string, unknown> {
  const events = chains.reduce((sum, { outcome }) => sum + (outcome.checked ?? 0), 0)
  const skippedEvents = chains.reduce((sum, { skipped }) => sum + skipped, 0)
  const counts = {
    workspaces: chains.length,
    events,
    ...(skippedEvents > 0 && { skippedEvents }),
  }
  const worst =
    chains.find(({ outcome }) => outcome.status === 'BROKEN') ??
    chains.find(({ outcome }) => outcome.status === 'FAILED')
  if (!worst) return { status: 'HOLDS', ...counts }
  return { ...auditedOutcome(worst.outcome), workspaceId: worst.workspaceId, ...counts }
}
