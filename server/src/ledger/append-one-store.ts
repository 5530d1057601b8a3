import { sql } from 'kysely'
import { assertId, type WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import { type ChainHead, type EventFacets, headAfter, type SealedEvent } from './event.ts'

/** Locks the head until the transaction ends. Returns null if the workspace doesn't exist. */
export async function lockHead(
  trx: Queryable,
  workspaceId: WorkspaceId,
): Promise<ChainHead | null> {
  const row = await trx
    .selectFrom('chain_head')
    .select(['seq', 'hash', 'last_id'])
    .where('workspace_id', '=', workspaceId)
    .forUpdate()
    .executeTakeFirst()
  if (!row) return null
  return {
    seq: row.seq,
    hash: row.hash,
    lastId: row.last_id === null ? null : assertId(row.last_id),
  }
}

/** Appends one event to a head that this transaction has locked. `appendEvents` appends many. */
export async function appendEvent(
  trx: Queryable,
  event: SealedEvent,
  facets: EventFacets,
): Promise<void> {
  const head = headAfter(event)
  await sql`
    insert into event (workspace_id, id, seq, ts, received_at, company_id, project_id, trace_id,
                       hash, prev_hash, category, action, actor_id, actor_email, resource_type,
                       resource_id, actor, resource, metadata, sealed, salts)
    values (${event.workspaceId}, ${event.id}, ${event.seq}, ${new Date(event.timestampMs)},
            ${new Date(event.receivedAtMs)}, ${event.companyId}, ${event.projectId},
            ${event.traceId}, decode(${event.hash}, 'hex'), decode(${event.prevHash}, 'hex'),
            ${event.category}, ${event.action}, ${facets.actorId}, ${facets.actorEmail},
            ${facets.resourceType}, ${facets.resourceId}, ${event.actor}, ${event.resource},
            ${event.metadata}, ${event.sealed}, ${event.salts})`.execute(trx)
  await trx
    .updateTable('chain_head')
    .set({
      seq: head.seq,
      hash: head.hash,
      last_id: head.lastId,
      moved_group: sql<number>`transaction_group()`,
    })
    .where('workspace_id', '=', event.workspaceId)
    .execute()
}
