import { Type } from 'typebox'
import { findFirstTimestamp } from '../../../outlet/explorer/first-event-store.ts'
import { visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { DateTime, Nullable, STRICT } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { EXPLORED_WORKSPACE } from './explorer-query.ts'

/** GET /dashboard/events/first-time: where "All time" starts. */
export const getFirstEventTime = defineRoute({
  method: 'GET',
  path: '/dashboard/events/first-time',
  member: 'events.read',
  summary: 'Get the time of the first event',
  description: 'Returns the earliest timestamp of the events that are not archived.',
  query: Type.Object(EXPLORED_WORKSPACE, STRICT),
  errors: ['not_found'],
  response: Type.Object(
    {
      timestamp: Nullable({
        ...DateTime,
        description: 'The earliest timestamp. Null if there are no events.',
      }),
    },
    { ...STRICT, description: 'When the first event happened.' },
  ),
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer, query }, reply) =>
      await readOrReportDrift(reply, { timestamp: null }, async () => {
        const { workspaceIds } = await visibleWorkspaces(deps.db, viewer, query.workspaceId)
        const first = await findFirstTimestamp(deps.db, workspaceIds)
        return { timestamp: first?.toISOString() ?? null }
      }),
})
