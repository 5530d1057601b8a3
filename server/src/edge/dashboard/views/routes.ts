import type { DashboardRoute } from '../dashboard-deps.ts'

export const VIEWS_ROUTES: readonly DashboardRoute[] = []
