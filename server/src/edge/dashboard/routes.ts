import { COMPANY_ROUTES } from './company/routes.ts'
import { EXPLORER_ROUTES } from './explorer/routes.ts'
import { EXPORTS_ROUTES } from './exports/routes.ts'
import { INTEGRITY_ROUTES } from './integrity/routes.ts'
import { KEYS_ROUTES } from './keys/routes.ts'
import { NOTICES_ROUTES } from './notices/routes.ts'
import { OIDC_ROUTES } from './oidc/routes.ts'
import { SECOND_FACTOR_ROUTES } from './second-factor/routes.ts'
import { SESSION_ROUTES } from './session/routes.ts'
import { TEMPLATES_ROUTES } from './templates/routes.ts'
import { VIEWS_ROUTES } from './views/routes.ts'
import { WEBHOOKS_ROUTES } from './webhooks/routes.ts'

/** Every route under /dashboard, by area. */
export const DASHBOARD_ROUTES = [
  SESSION_ROUTES,
  SECOND_FACTOR_ROUTES,
  OIDC_ROUTES,
  EXPLORER_ROUTES,
  VIEWS_ROUTES,
  EXPORTS_ROUTES,
  TEMPLATES_ROUTES,
  WEBHOOKS_ROUTES,
  KEYS_ROUTES,
  INTEGRITY_ROUTES,
  NOTICES_ROUTES,
  COMPANY_ROUTES,
] as const
