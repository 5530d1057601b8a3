import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import { type AuditOrigin, recorderOf, writeAuditEntry } from '../../intake/audit-entry.ts'
import type { Clock } from '../../platform/time/clock.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Caller } from '../../tenancy/caller.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import { findKeyByKid, type StoredKey } from '../../tenancy/key/key-store.ts'
import { requireAudit } from './gate.ts'
import { recheckKey } from './key-access.ts'
import { uncachedKey } from './key-cache.ts'

/** The key that sent the request. */
export function keyCaller({ clock }: { clock: Clock }, request: FastifyRequest): Caller {
  const { principal } = request
  const { companyId, workspaceId } = principal
  return {
    id: request.key.id,
    companyId,
    via: 'through the API',
    span: request.span,
    canSeeWorkspace: (id) => {
      if (workspaceId !== null) return workspaceId === id
      requireAudit(principal, id)
      return true
    },
    lock: async (trx) => {
      const current = await lockKey(trx, request, clock())
      return (entry) => writeAuditEntry(trx, originOf(request, current), entry, clock())
    },
    record: recorderOf(originOf(request, request.key), clock),
  }
}

/** `key` has the current name of the key. */
function originOf({ clientAddress, id }: FastifyRequest, key: StoredKey): AuditOrigin {
  return {
    companyId: key.companyId,
    category: 'api',
    actor: { id: key.id, role: 'key' },
    details: { address: clientAddress, keyName: key.name },
    traceId: id,
  }
}

/**
 * Locks the company and checks the key again, because the request may have waited for its body, a slot or
 * this lock. A revocation takes the same lock, so once it returns, no change with the key can commit. Every
 * other lock comes after the company's.
 */
async function lockKey(
  trx: Queryable,
  { key: { kid, companyId }, clientAddress: address, gate }: FastifyRequest,
  nowMs: number,
): Promise<StoredKey> {
  await lockCompany(trx, companyId)
  const key = await findKeyByKid(trx, kid)
  if (!key) throw new ApiError('invalid_api_key')
  recheckKey(uncachedKey(key), { address, gate, nowMs })
  return key
}
