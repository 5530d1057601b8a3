import { ApiError } from '../../errors.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { listKeysByKid } from '../../tenancy/key/key-store.ts'
import type { Principal } from '../../tenancy/principal.ts'
import { AccessWatch } from './access-watch.ts'
import { principalOf, refuseEndedKey } from './authenticate.ts'
import { admit, type Gate } from './gate.ts'
import { type CachedKey, uncachedKey } from './key-cache.ts'

/** Keyed by kid. It bypasses the key cache, whose age would delay revocation. */
export type KeyAccess = AccessWatch<CachedKey>

export function createKeyAccess(db: Queryable, logger: Logger): KeyAccess {
  return new AccessWatch<CachedKey>(async (kids) => {
    const keys = await listKeysByKid(db, kids)
    return new Map(keys.map((key) => [key.kid, uncachedKey(key)]))
  }, logger)
}

/** Throws whatever a new request with the key would throw, except for rate limits. */
export function recheckKey(
  key: CachedKey | null,
  { address, gate, nowMs }: { address: string; gate: Gate; nowMs: number },
): Principal {
  if (!key) throw new ApiError('invalid_api_key')
  const principal = principalOf(refuseEndedKey(key, nowMs))
  admit(principal, address, gate)
  return principal
}
