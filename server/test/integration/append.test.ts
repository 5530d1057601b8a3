import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { Client } from 'pg'
import type { PendingItem } from '../../src/intake/pending-item.ts'
import { sealBatch } from '../../src/intake/seal-batch.ts'
import { WRITER_SETTINGS } from '../../src/intake/writer.ts'
import { appendEvents, listFreeHeads, readHeads } from '../../src/ledger/append-store.ts'
import { createSaltSource } from '../../src/ledger/commitment.ts'
import type { ChainHead } from '../../src/ledger/event.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database } from '../../src/platform/pg/database.ts'
import { randomHex, type WorkspaceId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { assertChainsHold, countStored } from '../harness/event/ledger.ts'
import { pendingItem } from '../harness/event/pending-item.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
const client = new Client({
  ...annals.database.connection,
  options: WRITER_SETTINGS.map((setting) => `-c ${setting}`).join(' '),
})
await client.connect()
after(async () => {
  await client.end()
  await annals[Symbol.asyncDispose]()
})

const drawSalts = createSaltSource()

function itemOf({ company }: CreatedCompany, workspaceId: WorkspaceId, keyDigest: string | null) {
  const key = keyDigest === null ? null : { keyDigest, bodyCheck: 1 }
  return pendingItem({ companyId: company.id, workspaceId }, { key })
}

/** What the writer would send if it knew these heads. */
const seal = (items: PendingItem[], heads: ReadonlyMap<WorkspaceId, ChainHead>) =>
  sealBatch(items, heads, { nowMs: Date.now(), random: () => 0.5, drawSalts })

async function twoWorkspaces() {
  const tenant = await annals.createCompany({ workspaces: ['One', 'Two'] })
  const [first, second] = tenant.workspaces
  assert(first && second)
  return { tenant, first: first.id, second: second.id }
}

test('a workspace whose head has moved stores nothing, and the others store their events', async () => {
  const { tenant, first, second } = await twoWorkspaces()
  const items = [first, second].map((id) => itemOf(tenant, id, randomHex(16)))
  const heads = await readHeads(client, [first, second])
  const early = seal(items, heads)
  assert.deepEqual((await appendEvents(client, early)).moved, new Set([first, second]))
  const before = await countStored(annals)

  const now = await readHeads(client, [first])
  const known = now.get(first)
  const stale = heads.get(first)
  assert(known && stale)
  const wrongHeads: ChainHead[] = [
    stale,
    { ...known, seq: known.seq + 1 },
    { ...known, hash: 'ab'.repeat(32) },
  ]
  for (const [index, head] of wrongHeads.entries()) {
    const fresh = [first, second].map((id) => itemOf(tenant, id, randomHex(16)))
    const latest = await readHeads(client, [second])
    const batch = seal(fresh, new Map([[first, head], ...latest]))
    const { moved, replays } = await appendEvents(client, batch)
    assert.deepEqual(moved, new Set([second]))
    assert.equal(replays.size, 0)
    assert.equal(await countStored(annals), before + index + 1)
  }
  await assertChainsHold(annals)
})

test('a stored idempotency key blocks only its own workspace, and names its event', async () => {
  const { tenant, first, second } = await twoWorkspaces()
  const key = randomHex(16)
  const original = seal([itemOf(tenant, first, key)], await readHeads(client, [first]))
  await appendEvents(client, original)
  const items = [
    itemOf(tenant, first, null),
    itemOf(tenant, second, key),
    itemOf(tenant, first, key),
  ]
  const batch = seal(items, await readHeads(client, [first, second]))
  const { moved, replays, isSynchronous } = await appendEvents(client, batch)
  assert.deepEqual(moved, new Set([second]))
  assert.deepEqual(replays, new Map([[1, { eventId: original.rows[0]?.event.id, bodyCheck: 1 }]]))
  assert.equal(isSynchronous, false)
  await assertChainsHold(annals)
})

test('stores nothing inside a transaction that is rolled back', async () => {
  const { tenant, first } = await twoWorkspaces()
  const before = await countStored(annals)
  const heads = await readHeads(client, [first])
  await client.query('begin')
  await appendEvents(client, seal([itemOf(tenant, first, randomHex(16))], heads))
  await client.query('rollback')
  assert.equal(await countStored(annals), before)
  assert.deepEqual(await readHeads(client, [first]), heads)
})

test('checking for locked heads commits nothing and keeps no lock', async () => {
  const { first, second } = await twoWorkspaces()
  await using holder = new Database({
    connection: annals.database.connection,
    role: 'annals_serving',
    connectionsMax: 1,
    logger: createLogger('silent'),
  })
  await holder.db.transaction().execute(async (trx) => {
    const lock = sql`select 1 from chain_head where workspace_id = ${first} for update`
    await lock.execute(trx)
    assert.deepEqual(await listFreeHeads(client, [first, second]), new Set([second]))
    // A commit would wait for the disk, and for a standby.
    const { rows } = await client.query<{ status: string }>(
      'select pg_xact_status(xmax::text::xid8) as status from chain_head where workspace_id = $1',
      [second],
    )
    assert.equal(rows[0]?.status, 'aborted')
    await sql`select 1 from chain_head where workspace_id = ${second} for update nowait`.execute(
      trx,
    )
  })
})
