import type { DashboardRoute } from '../dashboard-deps.ts'

export const KEYS_ROUTES: readonly DashboardRoute[] = []
