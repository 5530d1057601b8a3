import type { DashboardRoute } from '../dashboard-deps.ts'

export const EXPLORER_ROUTES: readonly DashboardRoute[] = []
