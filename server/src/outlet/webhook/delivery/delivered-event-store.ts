import { sql } from 'kysely'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { eventOf } from '../dispatch/delivery-queue-store.ts'

/** What a list of deliveries shows about an event. */
type EventSummary = {
  category: string
  action: string
  actorId: string | null
  actorEmail: string | null
}

/** The events with these sequence numbers that are still in the table. */
export async function listDeliveredEvents(
  db: Queryable,
  { workspaceId, seqs }: { workspaceId: WorkspaceId; seqs: readonly number[] },
): Promise<Map<number, EventSummary>> {
  const { rows } = await sql<EventSummary & { seq: number }>`
    select e.*
      from unnest(${seqs}::bigint[]) as s (seq)
     cross join lateral (select ${workspaceId}::uuid as workspace_id, s.seq as event_seq) as d
     cross join lateral (
       select seq, category, action, actor_id as "actorId", actor_email as "actorEmail"
         from ${eventOf('d')}) as e`.execute(db)
  return new Map(rows.map(({ seq, ...event }) => [seq, event]))
}
