import type { Client } from 'pg'
import { assertId, type WorkspaceId } from '../platform/id.ts'
import { BindWriter } from '../platform/pg/bind-message.ts'
import { runStatement, type Statement } from '../platform/pg/pg-statement.ts'
import type { ChainHead, EventFacets, EventId, SealedEvent } from './event.ts'

const HASH_BYTES = 32

/** Moves a head from the position that the writer knows to the end of the batch. */
export type HeadMove = { workspaceId: WorkspaceId; from: ChainHead; to: ChainHead }

/** The idempotency key of an event: 128 bits in hex, and a CRC-32 of the body. */
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
  /** The workspaces whose events were stored. */
  moved: ReadonlySet<WorkspaceId>
  /** Keys that were already stored, by index in `keys`. No event of their workspaces was stored. */
  replays: ReadonlyMap<number, { eventId: EventId; bodyCheck: number }>
  /** Whether a standby has to confirm commits. */
  isSynchronous: boolean
}

/**
 * The only statement that writes batches of events. Each workspace succeeds or fails independently: its head
 * moves only from the position that the writer expects, and only if none of its keys is stored already. Its
 * events and keys are inserted only if the head moved.
 *
 * The key lookup is exact without a lock: a key is stored in the transaction that moves its workspace's
 * head. If the head hasn't moved since this statement's snapshot, no key was added either; if it has
 * moved, the compare-and-set fails.
 *
 * One statement is one round trip and one commit. Separate begin, lock, insert and commit
 * statements cost a quarter more.
 */
const APPEND: Statement = {
  name: 'append-events',
  text: `
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
     set seq = m.to_seq, hash = m.to_hash, last_id = m.to_id, moved_group = transaction_group()
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
select workspace_id, ordinal, event_id, body_check, current_setting('synchronous_standby_names') <> '' from replay`,
}

/** Runs within the open transaction of the connection, or else in a transaction of its own. */
export async function appendEvents(
  client: Client,
  append: Append,
  writer: BindWriter = new BindWriter(),
): Promise<AppendResult> {
  return await sendAppend(client, encodeAppend(append, writer))
}

/** Sends an append that is already encoded. */
export async function sendAppend(client: Client, messages: Buffer): Promise<AppendResult> {
  const rows = await runStatement(client, APPEND, messages)
  const moved = new Set<WorkspaceId>()
  const replays = new Map<number, { eventId: EventId; bodyCheck: number }>()
  for (const [workspaceId = null, ordinal, eventId, bodyCheck] of rows) {
    if (workspaceId === null) continue
    if (ordinal && eventId && bodyCheck) {
      replays.set(Number(ordinal) - 1, { eventId: assertId(eventId), bodyCheck: Number(bodyCheck) })
    } else {
      moved.add(assertId(workspaceId))
    }
  }
  return {
    moved,
    replays,
    isSynchronous: rows.some(([, , , , isSynchronous]) => isSynchronous === 't'),
  }
}

/**
 * Encodes the columns in the order of the statement's parameters. The messages stay in the writer's buffer
 * until the response arrives, so a writer can encode only one append at a time.
 */
export function encodeAppend({ moves, rows, keys }: Append, writer: BindWriter): Buffer {
  return writer
    .begin(APPEND.name)
    .uuids(keys, (key) => key.workspaceId)
    .uuids(keys, (key) => key.keyDigest)
    .uuids(keys, (key) => key.eventId)
    .int8s(keys, (key) => key.bodyCheck)
    .uuids(moves, (move) => move.workspaceId)
    .int8s(moves, (move) => move.from.seq)
    .texts(moves, (move) => move.from.hash)
    .int8s(moves, (move) => move.to.seq)
    .texts(moves, (move) => move.to.hash)
    .uuids(moves, (move) => move.to.lastId)
    .uuids(rows, ({ event }) => event.workspaceId)
    .uuids(rows, ({ event }) => event.id)
    .int8s(rows, ({ event }) => event.seq)
    .timestamptzs(rows, ({ event }) => event.timestampMs)
    .timestamptzs(rows, ({ event }) => event.receivedAtMs)
    .uuids(rows, ({ event }) => event.companyId)
    .uuids(rows, ({ event }) => event.projectId)
    .uuids(rows, ({ event }) => event.traceId)
    .hexes(rows, ({ event }) => event.hash, HASH_BYTES)
    .hexes(rows, ({ event }) => event.prevHash, HASH_BYTES)
    .texts(rows, ({ event }) => event.category)
    .texts(rows, ({ event }) => event.action)
    .texts(rows, ({ facets }) => facets.actorId)
    .texts(rows, ({ facets }) => facets.actorEmail)
    .texts(rows, ({ facets }) => facets.resourceType)
    .texts(rows, ({ facets }) => facets.resourceId)
    .texts(rows, ({ event }) => event.actor)
    .texts(rows, ({ event }) => event.resource)
    .texts(rows, ({ event }) => event.metadata)
    .texts(rows, ({ event }) => event.sealed)
    .texts(rows, ({ event }) => event.salts)
    .finish()
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
    values: [workspaceIds],
  })
  return headsOf(rows)
}

/** Locks the heads until the transaction ends. The ids are sorted, so that two writers can't deadlock. */
export async function lockHeads(
  client: Client,
  workspaceIds: readonly WorkspaceId[],
): Promise<Map<WorkspaceId, ChainHead>> {
  const { rows } = await client.query<HeadRow>({
    name: 'lock-heads',
    text: `select workspace_id as "workspaceId", seq, hash, last_id as "lastId"
             from lock_chain_heads($1::uuid[])`,
    values: [workspaceIds],
  })
  return headsOf(rows)
}

/**
 * Returns the heads that no transaction has locked. Rolls back, because committing locks waits for the disk.
 */
export async function listFreeHeads(
  client: Client,
  workspaceIds: readonly WorkspaceId[],
): Promise<Set<WorkspaceId>> {
  await client.query('begin')
  const { rows } = await client.query<{ id: string }>(
    `select workspace_id as id from chain_head
      where workspace_id = any ($1::uuid[]) for update skip locked`,
    [workspaceIds],
  )
  await client.query('rollback')
  return new Set(rows.map(({ id }) => assertId<'workspace'>(id)))
}

function headsOf(rows: readonly HeadRow[]): Map<WorkspaceId, ChainHead> {
  return new Map(
    rows.map(({ workspaceId, seq, hash, lastId }) => [
      assertId<'workspace'>(workspaceId),
      { seq: Number(seq), hash, lastId: lastId === null ? null : assertId<'event'>(lastId) },
    ]),
  )
}

/** Returns once the synchronous standby has confirmed all earlier commits. */
export async function awaitStandby(client: Client): Promise<void> {
  await client.query(`select pg_logical_emit_message(true, 'annals', 'replay')`)
}
