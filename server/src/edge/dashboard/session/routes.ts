import type { DashboardRoute } from '../dashboard-deps.ts'
import { getSession } from './get-session.ts'

export const SESSION_ROUTES: readonly DashboardRoute[] = [getSession]
