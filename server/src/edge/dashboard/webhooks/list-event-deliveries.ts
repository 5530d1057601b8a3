import { listEventDeliveries } from '../../../outlet/webhook/delivery/delivery-store.ts'
import { COMPANY_BOUNDS } from '../../../tenancy/plans.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { EventDeliveryList, EventDeliveryQuery } from '../../schema/dashboard/webhooks.ts'
import { deliveryRecord } from '../../webhook/webhook-record.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'

/** GET /dashboard/deliveries: the deliveries of one event, by webhook. */
export const listEventDeliveriesRoute = defineRoute({
  method: 'GET',
  path: '/dashboard/deliveries',
  member: 'webhooks.read',
  summary: 'List deliveries of an event',
  description: 'Returns the deliveries of the event to all webhooks of its workspace.',
  query: EventDeliveryQuery,
  errors: ['not_found'],
  response: EventDeliveryList,
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer, query: { workspaceId: named, eventSeq } }, reply) => {
      const limit = COMPANY_BOUNDS.webhooksPerWorkspaceMax
      const deliveries = await listOrReportDrift(reply, async () => {
        const workspaceId = await visibleWorkspace(deps.db, viewer, named)
        return await listEventDeliveries(deps.db, { workspaceId, eventSeq, limit })
      })
      return { deliveries: deliveries.map(deliveryRecord) }
    },
})
