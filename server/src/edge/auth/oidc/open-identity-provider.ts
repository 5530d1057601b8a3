import type { Config } from '../../../config.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { MonotonicClock } from '../../../platform/time/clock.ts'
import { IdentityProvider } from './identity-provider.ts'

/** Null if no identity provider is configured. Doesn't connect to it, because it may be down. */
export function openIdentityProvider({
  config,
  publicUrl,
  monotonic,
  logger,
}: {
  config: Config
  publicUrl: string | null
  monotonic: MonotonicClock
  logger: Logger
}): IdentityProvider | null {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret } = config
  // The configuration has all of them or none.
  if (issuer === null || clientId === null || clientSecret === null) return null
  return new IdentityProvider({
    settings: {
      issuer,
      clientId,
      clientSecret,
      scopes: config.oidcScopes,
      groupsClaim: config.oidcGroupsClaim,
      redirectUri: `${publicUrl ?? ''}/dashboard/oidc/callback`,
    },
    name: config.oidcName,
    monotonic,
    logger,
    hasRateLimits: config.rateLimits === 'on',
  })
}
