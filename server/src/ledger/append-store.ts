import type { Client } from 'pg'
import { assertId, type WorkspaceId } from '../platform/id.ts'
import {
  hexArray,
  int8Array,
  textArray,
  timestamptzArray,
  uuidArray,
} from '../platform/pg-array.ts'
import type { ChainHead, EventFacets, EventId, SealedEvent } from './event.ts'

const HASH_BYTES = 32

/** A head to move: from where the writer knows it to where the batch takes it. */
export type HeadMove = { workspaceId: WorkspaceId; from: ChainHead; to: ChainHead }

/** An idempotency key of the batch: 128 bits in hex, and a CRC-32 of the body. */
export type KeyedEvent = {
  workspaceId: WorkspaceId
  keyDigest: string
  eventId: EventId
  bodyCheck: number
}

export type Append = {
  moves: readonly HeadMove[]
  rows: readonly { event: SealedEvent; facets: EventFacets }[]
  keys: readonly KeyedEvent[]
}

export type AppendResult = {
  /** Their events are stored. */
  moved: ReadonlySet<WorkspaceId>
  /** Keys that are stored already, by their place in `keys`. Nothing of their workspace was stored. */
  replays: ReadonlyMap<number, { eventId: EventId; bodyCheck: number }>
  /** A standby must confirm commits before they count. */
  isSynchronous: boolean
}

/**
 * The one statement that writes events. Each workspace stands or falls by itself: its head moves
 * only from where the writer believed it, and only when none of its keys is stored; its events and
 * keys follow the head.
 *
 * The look-up of keys is exact without a lock: a key is stored in the transaction that moves its
 * workspace's head, so while the head has not moved since this statement's snapshot, no key has
 * come either, and when it has moved the compare-and-set fails.
 *
 * One statement is one round trip and one commit; begin, lock, insert and commit apart cost a
 * quarter more.
 */
const APPEND = `
with replay as materialized (
  select k.ordinal, k.workspace_id, i.event_id, i.body_check
    from unnest($1::uuid[], $2::uuid[]) with ordinality as k (workspace_id, key_digest, ordinal)
   cross join lateral (
     select s.event_id, s.body_check
       from idempotency_key s
      where s.workspace_id = k.workspace_id and s.key_digest = k.key_digest
      limit 1) as i
), moved as (
  update chain_head h
     set seq = m.to_seq, hash = m.to_hash, last_id = m.to_id
    from unnest($5::uuid[], $6::bigint[], $7::text[], $8::bigint[], $9::text[], $10::uuid[])
      as m (workspace_id, from_seq, from_hash, to_seq, to_hash, to_id)
   where h.workspace_id = m.workspace_id and h.seq = m.from_seq and h.hash = m.from_hash
     and not exists (select from replay r where r.workspace_id = m.workspace_id)
  returning h.workspace_id
), keyed as (
  insert into idempotency_key (workspace_id, key_digest, event_id, body_check)
  select k.workspace_id, k.key_digest, k.event_id, k.body_check
    from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[])
      as k (workspace_id, key_digest, event_id, body_check)
   where k.workspace_id in (select workspace_id from moved)
), stored as (
  insert into event (workspace_id, id, seq, ts, received_at, company_id, project_id, trace_id,
                     hash, prev_hash, category, action, actor_id, actor_email, resource_type,
                     resource_id, actor, resource, metadata, sealed, salts)
  select *
    from unnest($11::uuid[], $12::uuid[], $13::bigint[], $14::timestamptz[], $15::timestamptz[],
                $16::uuid[], $17::uuid[], $18::uuid[], $19::bytea[], $20::bytea[], $21::text[],
                $22::text[], $23::text[], $24::text[], $25::text[], $26::text[], $27::text[],
                $28::text[], $29::text[], $30::text[], $31::text[]) as e (workspace_id)
   where e.workspace_id in (select workspace_id from moved)
)
select workspace_id, null, null, null, current_setting('synchronous_standby_names') <> '' from moved
union all
select workspace_id, ordinal, event_id, body_check, current_setting('synchronous_standby_names') <> '' from replay`

/** Inside a transaction it stores with it; by itself it is a transaction of its own. */
export async function appendEvents(client: Client, append: Append): Promise<AppendResult> {
  const { rows } = await client.query<
    [string, string | null, string | null, string | null, boolean]
  >({ name: 'append-events', text: APPEND, values: parametersOf(append), rowMode: 'array' })
  const moved = new Set<WorkspaceId>()
  const replays = new Map<number, { eventId: EventId; bodyCheck: number }>()
  for (const [workspaceId, ordinal, eventId, bodyCheck] of rows) {
    if (ordinal === null || eventId === null || bodyCheck === null) {
      moved.add(assertId(workspaceId))
    } else {
      replays.set(Number(ordinal) - 1, {
        eventId: assertId(eventId),
        bodyCheck: Number(bodyCheck),
      })
    }
  }
  return { moved, replays, isSynchronous: rows.some(([, , , , isSynchronous]) => isSynchronous) }
}

/** In the order of the statement's parameters. */
function parametersOf({ moves, rows, keys }: Append): Buffer[] {
  return [
    uuidArray(keys, (key) => key.workspaceId),
    uuidArray(keys, (key) => key.keyDigest),
    uuidArray(keys, (key) => key.eventId),
    int8Array(keys, (key) => key.bodyCheck),
    uuidArray(moves, (move) => move.workspaceId),
    int8Array(moves, (move) => move.from.seq),
    textArray(moves, (move) => move.from.hash),
    int8Array(moves, (move) => move.to.seq),
    textArray(moves, (move) => move.to.hash),
    uuidArray(moves, (move) => move.to.lastId),
    uuidArray(rows, ({ event }) => event.workspaceId),
    uuidArray(rows, ({ event }) => event.id),
    int8Array(rows, ({ event }) => event.seq),
    timestamptzArray(rows, ({ event }) => event.timestampMs),
    timestamptzArray(rows, ({ event }) => event.receivedAtMs),
    uuidArray(rows, ({ event }) => event.companyId),
    uuidArray(rows, ({ event }) => event.projectId),
    uuidArray(rows, ({ event }) => event.traceId),
    hexArray(rows, ({ event }) => event.hash, HASH_BYTES),
    hexArray(rows, ({ event }) => event.prevHash, HASH_BYTES),
    textArray(rows, ({ event }) => event.category),
    textArray(rows, ({ event }) => event.action),
    textArray(rows, ({ facets }) => facets.actorId),
    textArray(rows, ({ facets }) => facets.actorEmail),
    textArray(rows, ({ facets }) => facets.resourceType),
    textArray(rows, ({ facets }) => facets.resourceId),
    textArray(rows, ({ event }) => event.actor),
    textArray(rows, ({ event }) => event.resource),
    textArray(rows, ({ event }) => event.metadata),
    textArray(rows, ({ event }) => event.sealed),
    textArray(rows, ({ event }) => event.salts),
  ]
}

type HeadRow = { workspaceId: string; seq: string; hash: string; lastId: string | null }

export async function readHeads(
  client: Client,
  workspaceIds: readonly WorkspaceId[],
): Promise<Map<WorkspaceId, ChainHead>> {
  const { rows } = await client.query<HeadRow>({
    name: 'read-heads',
    text: `select workspace_id as "workspaceId", seq, hash, last_id as "lastId"
             from chain_head where workspace_id = any ($1::uuid[])`,
    values: [uuidArray(workspaceIds, (id) => id)],
  })
  return headsOf(rows)
}

/** Locks until the end of the transaction. The ids come sorted, so that two writers cannot deadlock. */
export async function lockHeads(
  client: Client,
  workspaceIds: readonly WorkspaceId[],
): Promise<Map<WorkspaceId, ChainHead>> {
  const { rows } = await client.query<HeadRow>({
    name: 'lock-heads',
    text: `select workspace_id as "workspaceId", seq, hash, last_id as "lastId"
             from lock_chain_heads($1::uuid[])`,
    values: [uuidArray(workspaceIds, (id) => id)],
  })
  return headsOf(rows)
}

function headsOf(rows: readonly HeadRow[]): Map<WorkspaceId, ChainHead> {
  return new Map(
    rows.map(({ workspaceId, seq, hash, lastId }) => [
      assertId<'workspace'>(workspaceId),
      { seq: Number(seq), hash, lastId: lastId === null ? null : assertId<'event'>(lastId) },
    ]),
  )
}

/** Returns once every commit before it is confirmed by the standby that commits wait for. */
export async function awaitStandby(client: Client): Promise<void> {
  await client.query(`select pg_logical_emit_message(true, 'annals', 'replay')`)
}
