import { listRoutes } from '../../define-route.ts'
import { finishOidcSignIn } from './finish-oidc-sign-in.ts'
import { getIdentity } from './get-identity.ts'
import { getSignInOptions } from './get-sign-in-options.ts'
import { startOidcSignIn } from './start-oidc-sign-in.ts'
import { unlinkIdentity } from './unlink-identity.ts'

export const OIDC_ROUTES = listRoutes('OpenID Connect', {
  getSignInOptions,
  startOidcSignIn,
  finishOidcSignIn,
  getIdentity,
  unlinkIdentity,
})
