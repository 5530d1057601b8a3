import { timingSafeEqual } from 'node:crypto'
import { ApiError, type ErrorCode } from '../../errors.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { type KeyStatus, keyStatusAt } from '../../tenancy/key/key-status.ts'
import { matchesSecret, kidOf, parseKeyText } from '../../tenancy/key/key-text.ts'
import type { Principal } from '../../tenancy/principal.ts'
import type { CachedKey, KeyCache } from './key-cache.ts'

type LookUp = (read: () => Promise<CachedKey | null>) => Promise<CachedKey | null>

const BEARER = /^bearer +(\S+) *$/i

/**
 * Returns the key in an Authorization header once it is verified, or throws the reason it is refused. A key
 * that hasn't been verified on this node yet is read through `lookUp`, which can refuse.
 */
export async function authenticate(
  authorization: string | undefined,
  { keyCache, clock, lookUp }: { keyCache: KeyCache; clock: Clock; lookUp: LookUp },
): Promise<CachedKey> {
  const text = BEARER.exec(authorization ?? '')?.[1]
  if (text === undefined) throw new ApiError('missing_api_key')
  const kid = kidOf(text)
  const isKnown = isProven(keyCache.peek(kid), text)
  // Refuse text that can't be a key before it reaches the database.
  if (!isKnown && !parseKeyText(text)) throw new ApiError('invalid_api_key')
  const key = isKnown ? await keyCache.find(kid) : await lookUp(() => keyCache.find(kid))
  if (!key || !(isProven(key, text) || verifyKeyText(key, text)))
    throw new ApiError('invalid_api_key')
  return refuseEndedKey(key, clock())
}

/** Comparing with a text that was already verified takes a tenth of the time to parse and hash it again. */
function isProven(key: CachedKey | null, text: string): boolean {
  if (key?.provenText?.length !== text.length) return false
  return timingSafeEqual(key.provenText, Buffer.from(text, 'latin1'))
}

function verifyKeyText(key: CachedKey, text: string): boolean {
  const parsed = parseKeyText(text)
  if (!parsed || !matchesSecret(parsed.secret, key.secretHash)) return false
  key.provenText = Buffer.from(text, 'latin1')
  return true
}

export function refuseEndedKey(key: CachedKey, nowMs: number): CachedKey {
  const code = ENDED_KEY_CODES[keyStatusAt(key, nowMs)]
  if (code !== null) throw new ApiError(code)
  return key
}

/** The error for each key status; null if the key works. */
export const ENDED_KEY_CODES = {
  ACTIVE: null,
  ROTATING: null,
  EXPIRED: 'expired_api_key',
  REVOKED: 'invalid_api_key',
} as const satisfies Record<KeyStatus, ErrorCode | null>

export function principalOf(key: CachedKey): Principal {
  const common = {
    keyId: key.id,
    companyId: key.companyId,
    plan: key.plan,
    permissionMask: key.permissionMask,
    systemWorkspaceId: key.systemWorkspaceId,
    allowlist: key.ranges,
    allowlistForAllCalls: key.allowlistForAllCalls,
  }
  return key.workspaceId === null
    ? { ...common, scope: 'COMPANY', workspaceId: null }
    : { ...common, scope: 'WORKSPACE', workspaceId: key.workspaceId }
}
