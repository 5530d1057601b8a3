import { readHead } from '../../../ledger/event-store.ts'
import type { VerifyPeriod } from '../../../outlet/verify/verify-run.ts'
import { insertVerifyRun } from '../../../outlet/verify/verify-run-store.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { invalidParameterError, readFilter } from '../../event/event-filter-input.ts'
import { VerifyRunInput, VerifyRunRecord } from '../../schema/dashboard/integrity.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { verifyRunRecord } from './verify-run-record.ts'

/** POST /dashboard/integrity/runs: verifies a chain, or a period of it, in the background. */
export const startVerifyRun = defineRoute({
  method: 'POST',
  path: '/dashboard/integrity/runs',
  member: 'integrity.verify',
  summary: 'Verify a chain',
  description:
    'Recomputes the hash of every event in the chain, or of those received from `from` to `to`, including archived events. Then compares the last event with the newest signed checkpoint. A workspace can have one open run at a time, and the runs of a company are processed one at a time.',
  body: VerifyRunInput,
  errors: ['not_found', 'conflict'],
  response: { 201: VerifyRunRecord },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeVerifier'>) => async (request) => {
    const { viewer, body } = request
    const workspaceId = await visibleWorkspace(deps.db, viewer, body.workspaceId)
    const now = new Date(deps.clock())
    const period = readPeriod(body, now)
    // For a period, the worker finds the events.
    const total = period ? 0 : ((await readHead(deps.db, workspaceId))?.seq ?? 0)
    const run = await audited(deps, actorOf(request), async (trx, record) => {
      const inserted = await insertVerifyRun(trx, {
        companyId: viewer.companyId,
        workspaceId,
        total,
        period,
        createdBy: viewer.userId,
        now,
      })
      record({
        action: 'VERIFY_STARTED',
        resource: { type: 'workspace', id: workspaceId },
        metadata: { runId: inserted.id, ...(period ? auditedPeriod(period) : { events: total }) },
      })
      return inserted
    })
    deps.wakeVerifier()
    return await verifyRunRecord(deps.db, viewer, run)
  },
})

function readPeriod({ from, to }: { from?: string; to?: string }, now: Date): VerifyPeriod | null {
  if (from === undefined && to === undefined) return null
  if (from === undefined) throw invalidParameterError('/from', 'is required with to')
  if (to === undefined) throw invalidParameterError('/to', 'is required with from')
  const { fromMs, toMs } = readFilter({ from, to }, { fromPath: '/from' })
  if (fromMs === null || fromMs >= now.getTime()) {
    throw invalidParameterError('/from', 'must be in the past')
  }
  return { from: new Date(fromMs), to: new Date(Math.min(toMs ?? Infinity, now.getTime())) }
}

function auditedPeriod({ from, to }: VerifyPeriod) {
  return { from: from.toISOString(), to: to.toISOString() }
}
