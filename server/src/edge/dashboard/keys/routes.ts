import { listRoutes } from '../../define-route.ts'
import { createKey } from './create-key.ts'
import { listKeys } from './list-keys.ts'
import { preflightKey } from './preflight-key.ts'
import { revokeKey } from './revoke-key.ts'
import { rotateDashboardKey } from './rotate-dashboard-key.ts'
import { updateKey } from './update-key.ts'

export const KEYS_ROUTES = listRoutes('Keys', {
  listKeys,
  createKey,
  preflightKey,
  updateKey,
  rotateDashboardKey,
  revokeKey,
})
