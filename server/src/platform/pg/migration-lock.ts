import type { Client } from 'pg'
import { OperatorError } from '../../errors.ts'
import type { Logger } from '../logger.ts'
import { SQLSTATE, sqlStateOf } from './pg-error.ts'

/** Any number works, as long as nothing else in the database uses it. */
const MIGRATION_LOCK = 4_207_001
/** Applies to `serve` and all commands. Longer than the migrations of an ordinary upgrade. */
const WAIT_MS_MAX = 60_000
/** How long one statement waits. Between two attempts, the holder is reported. */
const ATTEMPT_MS = 1_000

export type LockWait = { lockWaitMsMax?: number; lockAttemptMs?: number }

/**
 * Takes the lock that makes programs migrate one at a time. The lock belongs to the session and ends with
 * it. PostgreSQL queues the programs, so that each continues as soon as the previous one is done. Reports
 * the holder once, and throws an OperatorError if the lock isn't free in time.
 */
export async function acquireMigrationLock(
  client: Client,
  logger: Logger,
  { lockWaitMsMax = WAIT_MS_MAX, lockAttemptMs = ATTEMPT_MS }: LockWait,
): Promise<void> {
  const giveUpAtMs = performance.now() + lockWaitMsMax
  for (let attempts = 1; !(await tryLock(client, lockAttemptMs)); attempts += 1) {
    const pid = await findLockOwner(client)
    if (attempts === 1) logger.warn({ event: 'migration.waiting', pid, lockWaitMsMax })
    if (performance.now() < giveUpAtMs) continue
    const waited = `${lockWaitMsMax / 1_000} s`
    const end = pid === null ? '' : `, or end it with select pg_terminate_backend(${pid})`
    throw new OperatorError(
      `Another session (PostgreSQL process ${pid ?? 'unknown'}) has held the migration lock for more than ${waited}. If it is migrating, start again when it is done${end}.`,
    )
  }
}

async function tryLock(client: Client, waitMsMax: number): Promise<boolean> {
  await client.query(`set lock_timeout = ${waitMsMax}`)
  try {
    await client.query(`select pg_advisory_lock(${MIGRATION_LOCK})`)
  } catch (error) {
    if (sqlStateOf(error) === SQLSTATE.LOCK_NOT_AVAILABLE) return false
    throw error
  }
  // A migration may wait for locks as long as necessary.
  await client.query('reset lock_timeout')
  return true
}

async function findLockOwner(client: Client): Promise<number | null> {
  const { rows } = await client.query<{ pid: number }>(
    `select pid from pg_locks
      where locktype = 'advisory' and granted and classid = 0 and objid = $1 and objsubid = 1
        and database = (select oid from pg_database where datname = current_database())`,
    [MIGRATION_LOCK],
  )
  return rows[0]?.pid ?? null
}
