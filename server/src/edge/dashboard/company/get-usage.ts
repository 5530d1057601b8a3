import { Type } from 'typebox'
import { countLastMinute, listUsageDays } from '../../../outlet/explorer/usage-store.ts'
import { DAY_MS } from '../../../platform/time/time-units.ts'
import { PLAN_TERMS } from '../../../tenancy/plans.ts'
import { visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { asJsonText, joinRecords } from '../../page-json.ts'
import { UsageQuery, UsageRecord } from '../../schema/dashboard/usage.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift, readOrReportDrift } from '../schema-drift.ts'

const DAYS_DEFAULT = 30

/** GET /dashboard/usage: events and bytes per day in the workspaces that the member can see. */
export const getUsage = defineRoute({
  method: 'GET',
  path: '/dashboard/usage',
  member: 'usage.read',
  summary: 'Get usage',
  description: 'Returns events and bytes per day.',
  query: UsageQuery,
  errors: ['not_found'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(UsageRecord),
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'hasRateLimits'>) =>
    async ({ viewer, query }, reply) => {
      const workspaceIds = await listOrReportDrift(
        reply,
        async () => (await visibleWorkspaces(deps.db, viewer, query.workspaceId)).workspaceIds,
      )
      const nowMs = deps.clock()
      const to = new Date(Math.floor(nowMs / DAY_MS) * DAY_MS + DAY_MS)
      const from = new Date(to.getTime() - (query.days ?? DAYS_DEFAULT) * DAY_MS)
      const now = new Date(nowMs)
      const days = await listOrReportDrift(reply, () =>
        listUsageDays(deps.db, { workspaceIds, from, to }),
      )
      const eventsLastMinute = await readOrReportDrift(reply, 0, () =>
        countLastMinute(deps.db, { workspaceIds, now }),
      )
      const { eventsPerSecondMax } = PLAN_TERMS[viewer.plan]
      const rest = JSON.stringify({
        eventsLastMinute,
        eventsPerSecondMax: deps.hasRateLimits ? eventsPerSecondMax : null,
      })
      const records = await joinRecords(days, ({ json }) => json, viewer.companyId)
      asJsonText(reply)
      return `{"days":[${records}],${rest.slice(1)}`
    },
})
