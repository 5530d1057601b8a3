import type { DashboardRoute } from '../dashboard-deps.ts'

export const EXPORTS_ROUTES: readonly DashboardRoute[] = []
