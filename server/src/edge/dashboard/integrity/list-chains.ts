import { EMPTY_HEAD } from '../../../ledger/event.ts'
import { readHead } from '../../../ledger/event-store.ts'
import { readArchivedSeq } from '../../../ledger/segment/segment-store.ts'
import { listLastRuns } from '../../../outlet/verify/verify-run-store.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import {
  listViewerWorkspaces,
  type NamedWorkspace,
} from '../../../tenancy/workspace/workspace-store.ts'
import { defineRoute } from '../../define-route.ts'
import { ChainList } from '../../schema/dashboard/integrity.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { verifyRunRecords } from './verify-run-record.ts'

/** GET /dashboard/integrity: the head of each chain, and the result of its last verification. */
export const listChains = defineRoute({
  method: 'GET',
  path: '/dashboard/integrity',
  member: 'integrity.read',
  summary: 'List chains',
  description:
    'Returns the head of each chain that the member can see, and its last run. A run of a period is included only while it is running.',
  response: ChainList,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer }, reply) => {
      const workspaces = await listOrReportDrift(reply, () => listViewerWorkspaces(deps.db, viewer))
      const workspaceIds = workspaces.map(({ id }) => id)
      const runs = await listOrReportDrift(reply, async () => {
        const last = await listLastRuns(deps.db, { companyId: viewer.companyId, workspaceIds })
        return await verifyRunRecords(deps.db, viewer, last)
      })
      const chains = await listOrReportDrift(reply, async () => {
        const found = []
        for (const workspace of workspaces) {
          const lastRun = runs.find(({ workspaceId }) => workspaceId === workspace.id) ?? null
          found.push({ ...(await readChain(deps.db, workspace)), lastRun })
        }
        return found
      })
      return { chains }
    },
})

async function readChain(db: Queryable, { id: workspaceId, name, kind }: NamedWorkspace) {
  const { seq, hash, lastId } = (await readHead(db, workspaceId)) ?? EMPTY_HEAD
  const archivedSeq = await readArchivedSeq(db, workspaceId)
  return { workspaceId, name, kind, seq, hash, lastEventId: lastId, archivedSeq }
}
