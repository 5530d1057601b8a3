import type { DashboardRoute } from '../dashboard-deps.ts'

export const TEMPLATES_ROUTES: readonly DashboardRoute[] = []
