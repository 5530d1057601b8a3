import type { FastifyRequest } from 'fastify'
import type { Clock } from '../../platform/time/clock.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { compileRanges } from '../../tenancy/allowlist.ts'
import type { Caller } from '../../tenancy/caller.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import { findKeyByKid } from '../../tenancy/key-store.ts'
import { readmit } from './key-access.ts'

/** The key that sent the request. Its changes have no audit entries. */
export function keyCaller({ clock }: { clock: Clock }, request: FastifyRequest): Caller {
  const { companyId, workspaceId } = request.principal
  return {
    companyId,
    via: 'through the API',
    canSeeWorkspace: (id) => workspaceId === null || workspaceId === id,
    lock: async (trx) => {
      await lockForKeyChange(trx, request, clock())
      return async () => {}
    },
  }
}

/**
 * Locks the company and checks the key again, because the request may have waited for its body, a slot or
 * this lock. A revocation takes the same lock, so once it returns, no change with the key can commit. Every
 * other lock comes after the company's.
 */
async function lockForKeyChange(
  trx: Queryable,
  { key: { kid, companyId }, clientAddress: address, gate }: FastifyRequest,
  nowMs: number,
): Promise<void> {
  await lockCompany(trx, companyId)
  const key = await findKeyByKid(trx, kid)
  readmit(key && { ...key, ranges: compileRanges(key.allowlist), provenText: null }, {
    address,
    gate,
    nowMs,
  })
}
