import { listRoutes } from '../../define-route.ts'
import { followEvents } from './follow-events.ts'
import { getDashboardEvent } from './get-dashboard-event.ts'
import { getEventContext } from './get-event-context.ts'
import { getEventHistogram } from './get-event-histogram.ts'
import { getFirstEventTime } from './get-first-event-time.ts'
import { listArchivedEvents } from './list-archived-events.ts'
import { listDashboardEvents } from './list-dashboard-events.ts'
import { listDashboardEventTypes } from './list-dashboard-event-types.ts'
import { listFilterOptions } from './list-filter-options.ts'

export const EXPLORER_ROUTES = listRoutes('Explorer', {
  listDashboardEvents,
  listArchivedEvents,
  getDashboardEvent,
  getEventContext,
  listFilterOptions,
  getEventHistogram,
  getFirstEventTime,
  followEvents,
  listDashboardEventTypes,
})
