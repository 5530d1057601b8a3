import assert from 'node:assert/strict'
import { Client } from 'pg'
import { verifyChain } from '../../../src/outlet/verify/verify-ledger.ts'
import type { ObjectStore } from '../../../src/platform/object-store/object-store.ts'
import { createLogger } from '../../../src/platform/logger.ts'
import { Database } from '../../../src/platform/pg/database.ts'
import type { Server } from '../../../src/platform/pg/server-address.ts'
import { listAllWorkspaces } from '../../../src/tenancy/workspace/workspace-store.ts'
import { isAccepted, isAcknowledged, type Load, type SentEvent } from './load.ts'
import { TIMEOUT_FACTOR } from '../timing/timeout-factor.ts'

/**
 * The oracle of the fault tests. Whatever happened to the service under load:
 *
 * 1. every chain is valid from its first event to its head, without gaps, with ids in chain order;
 * 2. every acknowledged event is stored exactly once, under the id in the response; every other
 *    event at most once; and every stored event was sent;
 * 3. the service accepts every unacknowledged event that is retried with its key, without
 *    intervention, and then each is stored exactly once.
 */
export async function assertLedgerHolds(connection: Server, loads: readonly Load[]): Promise<void> {
  await Promise.all(loads.map((load) => load.stop()))
  const events = loads.flatMap((load) => load.events)
  await assertStored(connection, events)
  for (const load of loads) await load.settle()
  assert(events.every(isAcknowledged))
  await assertStored(connection, events)
}

async function assertStored(connection: Server, events: readonly SentEvent[]): Promise<void> {
  await assertEveryChainHolds(connection)
  const rows = await readRows(connection, [...new Set(events.map((event) => event.workspaceId))])
  assertGapless(rows)
  const sent = new Set(events.map(({ key }) => key))
  const idOf = new Map<string, string>()
  for (const { id, request, keys } of rows) {
    assert(sent.has(request), `event ${id} was never sent`)
    assert(!idOf.has(request), `${request} is stored twice: ${idOf.get(request)} and ${id}`)
    assert.equal(keys, 1, `event ${id} has ${keys} idempotency keys`)
    idOf.set(request, id)
  }
  for (const { key, attempts } of events) {
    for (const { id, status } of attempts.filter(isAccepted)) {
      assert.equal(idOf.get(key), id, `${key} returned ${status} with an id that is not stored`)
    }
  }
}

/** Nothing is archived in these runs, so no file exists. */
const NO_ARCHIVE: ObjectStore = {
  put: () => Promise.reject(new Error('nothing is archived here')),
  read: async () => null,
  readTagged: async () => null,
  replace: async () => null,
  readRange: async () => null,
  list: async () => ({ keys: [], cursor: null }),
  stat: async () => null,
  restore: async () => {},
  delete: async () => {},
  [Symbol.asyncDispose]: async () => {},
}

/** Verifies every chain of the database. */
export async function assertEveryChainHolds(connection: Server): Promise<void> {
  await using database = new Database({
    connection,
    role: 'annals_serving',
    connectionsMax: 1,
    logger: createLogger('silent'),
    timeoutFactor: TIMEOUT_FACTOR,
  })
  for (const { id: workspaceId } of await listAllWorkspaces(database.db)) {
    const verdict = await verifyChain(database, NO_ARCHIVE, workspaceId)
    assert(verdict.ok, JSON.stringify(verdict))
  }
}

type Row = { workspaceId: string; seq: number; id: string; request: string; keys: number }

/** Uses a separate statement in chain order, not the code under test. */
async function readRows(connection: Server, workspaceIds: readonly string[]): Promise<Row[]> {
  const client = new Client(connection)
  await client.connect()
  try {
    const { rows } = await client.query<Row>(
      `select coalesce(e.workspace_id, k.workspace_id) as "workspaceId", e.seq::int,
              coalesce(e.id, k.event_id) as id, e.metadata::jsonb ->> 'request' as request,
              count(k.event_id)::int as keys
         from event as e
         full join idempotency_key as k on k.workspace_id = e.workspace_id and k.event_id = e.id
        where coalesce(e.workspace_id, k.workspace_id) = any ($1::uuid[])
        group by 1, 2, 3, 4
        order by 1, 2`,
      [workspaceIds],
    )
    return rows
  } finally {
    await client.end()
  }
}

function assertGapless(rows: readonly Row[]): void {
  rows.forEach((row, index) => {
    const last = rows[index - 1]
    const before = last?.workspaceId === row.workspaceId ? last : null
    assert.equal(row.seq, (before?.seq ?? 0) + 1, `a gap before event ${row.id}`)
    // Lower-case hex of equal length sorts like the ids.
    if (before) assert(row.id > before.id, `the id ${row.id} is not above ${before.id}`)
  })
}
