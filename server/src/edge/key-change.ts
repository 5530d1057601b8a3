import type { FastifyRequest } from 'fastify'
import type { Clock } from '../platform/time/clock.ts'
import type { Queryable } from '../platform/pg/database.ts'
import { compileRanges } from '../tenancy/allowlist.ts'
import { lockCompany } from '../tenancy/company-store.ts'
import { findKeyByKid } from '../tenancy/key-store.ts'
import { readmit } from './auth/key-access.ts'

/** Makes a change for a request with a key, in a transaction, if the key still works. */
export async function changeWithKey<T>(
  { db, clock }: { db: Queryable; clock: Clock },
  request: FastifyRequest,
  change: (trx: Queryable) => Promise<T>,
): Promise<T> {
  return await db.transaction().execute(async (trx) => {
    await lockForKeyChange(trx, request, clock())
    return await change(trx)
  })
}

/**
 * Locks the company and checks the key again, because the request may have waited for its body, a slot or
 * this lock. A revocation takes the same lock, so once it returns, no change with the key can commit. Call it
 * first in the transaction: every other lock comes after the company's.
 */
export async function lockForKeyChange(
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
