import { sql } from 'kysely'
import type { UserId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { HOUR_MS } from '../../platform/time/time-units.ts'

/** A secret that no code has confirmed by then can't be confirmed anymore. */
const ENROLLMENT_LIFE_MS = HOUR_MS

type SecondFactorStatus = { enabledAt: Date; recoveryCodesLeft: number }

/** Null if the member has no second factor. One that isn't confirmed doesn't count. */
export async function findSecondFactor(
  db: Queryable,
  userId: UserId,
): Promise<SecondFactorStatus | null> {
  const { rows } = await sql<SecondFactorStatus>`
    select confirmed_at as "enabledAt", cardinality(recovery_hashes) as "recoveryCodesLeft"
      from second_factor
     where user_id = ${userId} and confirmed_at is not null`.execute(db)
  return rows[0] ?? null
}

/** Replaces a secret that isn't confirmed. Returns false if the member already has a second factor. */
export async function insertPendingFactor(
  db: Queryable,
  { userId, secret, nowMs }: { userId: UserId; secret: Buffer; nowMs: number },
): Promise<boolean> {
  const result = await db
    .insertInto('second_factor')
    .values({ user_id: userId, secret, created_at: new Date(nowMs), confirmed_at: null })
    .onConflict((conflict) =>
      conflict
        .column('user_id')
        .doUpdateSet({ secret, created_at: new Date(nowMs) })
        .where('second_factor.confirmed_at', 'is', null),
    )
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}

/** Locks the secret that waits for its first code. Null if there is none, or if it is too old. */
export async function lockPendingSecret(
  trx: Queryable,
  userId: UserId,
  nowMs: number,
): Promise<Buffer | null> {
  const row = await trx
    .selectFrom('second_factor')
    .select('secret')
    .where('user_id', '=', userId)
    .where('confirmed_at', 'is', null)
    .where('created_at', '>', new Date(nowMs - ENROLLMENT_LIFE_MS))
    .forUpdate()
    .executeTakeFirst()
  return row?.secret ?? null
}

/** From now on, sign-in requires the second factor. */
export async function confirmFactor(
  trx: Queryable,
  {
    userId,
    usedStep,
    recoveryHashes,
    nowMs,
  }: { userId: UserId; usedStep: number; recoveryHashes: Buffer[]; nowMs: number },
): Promise<void> {
  await trx
    .updateTable('second_factor')
    .set({
      confirmed_at: new Date(nowMs),
      used_step: usedStep,
      recovery_hashes: recoveryHashes,
    })
    .where('user_id', '=', userId)
    .where('confirmed_at', 'is', null)
    .execute()
}

/** Locks the second factor, so that a code is used once. Null if the member has none. */
export async function lockSecondFactor(
  trx: Queryable,
  userId: UserId,
): Promise<{ secret: Buffer; usedStep: number } | null> {
  const row = await trx
    .selectFrom('second_factor')
    .select(['secret', 'used_step'])
    .where('user_id', '=', userId)
    .where('confirmed_at', 'is not', null)
    .forUpdate()
    .executeTakeFirst()
  return row ? { secret: row.secret, usedStep: row.used_step } : null
}

export async function setUsedStep(
  trx: Queryable,
  { userId, usedStep }: { userId: UserId; usedStep: number },
): Promise<void> {
  await trx
    .updateTable('second_factor')
    .set({ used_step: usedStep })
    .where('user_id', '=', userId)
    .execute()
}

/** Returns how many recovery codes are left, or null if this isn't one of them. */
export async function consumeRecoveryHash(
  trx: Queryable,
  { userId, recoveryHash }: { userId: UserId; recoveryHash: Buffer },
): Promise<number | null> {
  const { rows } = await sql<{ left: number }>`
    update second_factor
       set recovery_hashes = array_remove(recovery_hashes, ${recoveryHash}::bytea)
     where user_id = ${userId} and confirmed_at is not null
       and ${recoveryHash}::bytea = any (recovery_hashes)
 returning cardinality(recovery_hashes) as left`.execute(trx)
  return rows[0]?.left ?? null
}

export async function replaceRecoveryHashes(
  trx: Queryable,
  { userId, recoveryHashes }: { userId: UserId; recoveryHashes: Buffer[] },
): Promise<void> {
  await trx
    .updateTable('second_factor')
    .set({ recovery_hashes: recoveryHashes })
    .where('user_id', '=', userId)
    .execute()
}

/** Returns false if the member had no second factor. */
export async function deleteSecondFactor(trx: Queryable, userId: UserId): Promise<boolean> {
  const row = await trx
    .deleteFrom('second_factor')
    .where('user_id', '=', userId)
    .returning('confirmed_at')
    .executeTakeFirst()
  return row !== undefined && row.confirmed_at !== null
}
