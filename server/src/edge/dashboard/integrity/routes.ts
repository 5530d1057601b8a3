import type { DashboardRoute } from '../dashboard-deps.ts'

export const INTEGRITY_ROUTES: readonly DashboardRoute[] = []
