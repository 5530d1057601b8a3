import { readHead } from '../../../ledger/event-store.ts'
import { insertVerifyRun } from '../../../outlet/verify/verify-run-store.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { VerifyRunInput, VerifyRunRecord } from '../../schema/dashboard/integrity.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { verifyRunRecord } from './verify-run-record.ts'

/** POST /dashboard/integrity/runs: verifies a whole chain in the background. */
export const startVerifyRun = defineRoute({
  method: 'POST',
  path: '/dashboard/integrity/runs',
  member: 'integrity.verify',
  summary: 'Verify a chain',
  description:
    'Recomputes every hash from the first event to the last, including archived events. A workspace can have one open run at a time, and the runs of a company are processed one at a time.',
  body: VerifyRunInput,
  errors: ['not_found', 'conflict'],
  response: { 201: VerifyRunRecord },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'wakeVerifier'>) => async (request) => {
    const { viewer, body } = request
    const workspaceId = await visibleWorkspace(deps.db, viewer, body.workspaceId)
    const total = (await readHead(deps.db, workspaceId))?.seq ?? 0
    const run = await audited(deps, actorOf(request), async (trx, record) => {
      const inserted = await insertVerifyRun(trx, {
        companyId: viewer.companyId,
        workspaceId,
        total,
        createdBy: viewer.userId,
        now: new Date(deps.clock()),
      })
      record({
        action: 'VERIFY_STARTED',
        resource: { type: 'workspace', id: workspaceId },
        metadata: { runId: inserted.id, events: total },
      })
      return inserted
    })
    deps.wakeVerifier()
    return verifyRunRecord(run)
  },
})
