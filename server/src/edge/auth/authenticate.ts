import { ApiError } from '../../errors.ts'
import type { Clock } from '../../platform/clock.ts'
import { isSecretOf, parseKeyText } from '../../tenancy/key-text.ts'
import type { Principal } from '../../tenancy/principal.ts'
import type { CachedKey, KeyCache } from './key-cache.ts'

const BEARER = /^bearer +(\S+) *$/i

/** The key of an Authorization header, checked, or the reason it is refused. */
export async function authenticate(
  authorization: string | undefined,
  { keyCache, clock }: { keyCache: KeyCache; clock: Clock },
): Promise<CachedKey> {
  const text = BEARER.exec(authorization ?? '')?.[1]
  if (text === undefined) throw new ApiError('missing_api_key')
  const parsed = parseKeyText(text)
  const key = parsed && (await keyCache.find(parsed.kid))
  if (!parsed || !key || !isSecretOf(parsed.secret, key.secretHash)) {
    throw new ApiError('invalid_api_key')
  }
  const nowMs = clock()
  if (key.revokedAt !== null || (key.graceUntil !== null && key.graceUntil.getTime() <= nowMs)) {
    throw new ApiError('invalid_api_key')
  }
  if (key.expiresAt !== null && key.expiresAt.getTime() <= nowMs) {
    throw new ApiError('expired_api_key')
  }
  return key
}

export function principalOf(key: CachedKey): Principal {
  const common = {
    keyId: key.id,
    companyId: key.companyId,
    plan: key.plan,
    allowlist: key.ranges,
    allowlistForAllCalls: key.allowlistForAllCalls,
  }
  return key.workspaceId === null
    ? { ...common, scope: 'COMPANY', workspaceId: null }
    : { ...common, scope: 'WORKSPACE', workspaceId: key.workspaceId }
}
