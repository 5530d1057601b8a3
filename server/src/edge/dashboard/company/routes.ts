import type { DashboardRoute } from '../dashboard-deps.ts'

export const COMPANY_ROUTES: readonly DashboardRoute[] = []
