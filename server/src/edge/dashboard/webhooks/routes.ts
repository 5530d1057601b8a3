import type { DashboardRoute } from '../dashboard-deps.ts'

export const WEBHOOKS_ROUTES: readonly DashboardRoute[] = []
