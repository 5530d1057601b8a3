import { sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import type { Checkpoint } from './checkpoint-store.ts'

/** The last checkpoint of a day. */
export type DayCheckpoint = Omit<Checkpoint, 'origin'>

export const CHECKPOINT_DAYS_MAX = 400

/** Whether `next` was signed on a later day than `last`, in UTC. */
export function endsDay(last: Pick<Checkpoint, 'signedAt'>, next: Pick<Checkpoint, 'signedAt'>) {
  return dayOf(last.signedAt) < dayOf(next.signedAt)
}

function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10)
}

/** Keeps the last checkpoint of its day, and deletes those that are too old. */
export async function keepDayCheckpoint(
  trx: Queryable,
  workspaceId: WorkspaceId,
  { size, root, note, vkey, signedAt }: DayCheckpoint,
): Promise<void> {
  await sql`
    insert into checkpoint_day (workspace_id, day, size, root, note, vkey, signed_at)
    values (${workspaceId}, ${dayOf(signedAt)}::date, ${size}, ${root}, ${note}, ${vkey}, ${signedAt})
    on conflict (workspace_id, day) do update
       set size = excluded.size, root = excluded.root, note = excluded.note, vkey = excluded.vkey,
           signed_at = excluded.signed_at
     where checkpoint_day.size <= excluded.size`.execute(trx)
  const oldest = new Date(signedAt.getTime() - (CHECKPOINT_DAYS_MAX - 1) * DAY_MS)
  await sql`
    delete from checkpoint_day
     where workspace_id = ${workspaceId} and day < ${dayOf(oldest)}::date`.execute(trx)
}

/** The last checkpoint of each day before the newest one, the latest first. */
export async function listDayCheckpoints(
  db: Queryable,
  { workspaceId, limit }: { workspaceId: WorkspaceId; limit: number },
): Promise<DayCheckpoint[]> {
  const rows = await db
    .selectFrom('checkpoint_day')
    .select(['size', 'root', 'note', 'vkey', 'signed_at'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('day', 'desc')
    .limit(limit)
    .execute()
  return rows.map(({ signed_at: signedAt, ...row }) => ({ ...row, signedAt }))
}
