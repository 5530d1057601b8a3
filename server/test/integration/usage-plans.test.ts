import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { countLastMinute } from '../../src/outlet/explorer/usage-store.ts'
import { newId, type WorkspaceId } from '../../src/platform/id.ts'
import type { Queryable } from '../../src/platform/pg/database.ts'
import { query } from '../harness/database/engine.ts'
import { measureReads } from '../harness/database/explain.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const { pool, db } = annals.app.database
const COMPANY_ID = newId<'company'>()
const now = new Date()

/** Events in chain order: how many, and the offset of each timestamp from now in seconds. */
type Run = { events: number; id: number; receivedAt?: number; ts?: number }

async function createChain(runs: readonly Run[]): Promise<WorkspaceId> {
  const workspaceId = newId<'workspace'>()
  let seq = 0
  for (const { events, id, receivedAt = id, ts = receivedAt } of runs) {
    const at = (seconds: number) =>
      `timestamptz '${new Date(now.getTime() + seconds * 1_000).toISOString()}'`
    await query(
      connection,
      `insert into event (seq, ts, received_at, id, workspace_id, company_id, hash, prev_hash,
                          category, action, sealed, salts)
       select n, ${at(ts)}, ${at(receivedAt)},
              overlay(event_id_floor(${at(id)})::text placing lpad(to_hex(n), 12, '0') from 25)::uuid,
              '${workspaceId}', '${COMPANY_ID}', sha256(n::text::bytea),
              sha256((n - 1)::text::bytea), 'category', 'action', '{}', '{}'
         from generate_series(${seq + 1}, ${seq + events}) as n`,
    )
    seq += events
  }
  await query(
    connection,
    `insert into chain_head (workspace_id, seq, hash, last_id)
     select workspace_id, seq, encode(hash, 'hex'), id
       from event where workspace_id = '${workspaceId}' and seq = ${seq}`,
  )
  return workspaceId
}

test('counting the last minute reads fewer events than the minute has, whatever timestamps clients choose', async () => {
  const assertReadsFew = async (statistics: string) => {
    const count = (counted: Queryable) =>
      countLastMinute(counted, { workspaceIds: [workspaceId], now })
    assert.equal(await count(db), 200)
    const { rows, blocks } = await measureReads(pool, 'event', count)
    const shown = `${rows} rows, ${blocks} blocks with ${statistics} statistics`
    assert(rows > 0 && rows <= 40 && blocks <= 200, shown)
  }
  const futureDated = { events: 20_000, id: -3_600, ts: 43_200 }
  const chain = [futureDated, { events: 200, id: -30, ts: 43_200 }]
  let workspaceId = await createChain(chain)
  await assertReadsFew('no')
  await query(connection, 'analyze event')
  await assertReadsFew('current')
  await query(connection, 'truncate event')
  await query(
    connection,
    `insert into event (seq, ts, received_at, id, workspace_id, company_id, hash, prev_hash,
                        category, action, sealed, salts)
     select 1, now(), now(), event_id_floor(now()), gen_random_uuid(), '${COMPANY_ID}', '', '',
            'category', 'action', '{}', '{}'
       from generate_series(1, 2000) as n`,
  )
  await query(connection, 'analyze event')
  workspaceId = await createChain(chain)
  await assertReadsFew('outdated')
})

test('the last minute contains exactly the events received in it', async () => {
  const counts = [1, 2, 3, 4, 5, 8, 9, 31, 32, 33]
  const workspaceIds: WorkspaceId[] = []
  for (const recent of counts) {
    for (const earlier of [0, 1, 50]) {
      const runs = [
        { events: earlier, id: -61, ts: 10 },
        { events: recent, id: -60, ts: -86_400 },
      ]
      const workspaceId = await createChain(runs)
      workspaceIds.push(workspaceId)
      assert.equal(await countLastMinute(db, { workspaceIds: [workspaceId], now }), recent)
    }
  }
  workspaceIds.push(await createChain([{ events: 5, id: -61 }]), newId())
  const total = 3 * counts.reduce((sum, count) => sum + count, 0)
  assert.equal(await countLastMinute(db, { workspaceIds, now }), total)
  assert.equal(await countLastMinute(db, { workspaceIds: [], now }), 0)
})

test('events from before a clock was set back do not count as those of the last minute', async () => {
  const workspaceId = await createChain([
    { events: 500, id: 3_600 },
    { events: 500, id: 3_601, receivedAt: -600 },
    { events: 20, id: 3_602, receivedAt: -10 },
  ])
  assert.equal(await countLastMinute(db, { workspaceIds: [workspaceId], now }), 20)
})

test('a statement of the service uses one process', async () => {
  const { rows } = await pool.query('show max_parallel_workers_per_gather')
  assert.deepEqual(rows, [{ max_parallel_workers_per_gather: '0' }])
})
