import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sql } from 'kysely'
import { recomputeHash } from '../../src/ledger/chain.ts'
import { EMPTY_HEAD, type SealedEvent } from '../../src/ledger/event.ts'
import { listChainRun } from '../../src/ledger/event-store.ts'
import { confirmRows } from '../../src/outlet/verify/confirm-rows.ts'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { newId } from '../../src/platform/id.ts'
import type { Database } from '../../src/platform/pg/database.ts'
import { SERVICE } from '../../src/platform/scheduling/thread-share.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { tamperWith } from '../harness/database/tamper.ts'

const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())
const { database, archive } = annals.app
const { workspace, workspaceKey: key, project } = await annals.createCompany()
const workspaceId = workspace.id

const base = { category: 'c', action: 'a' }
const actor = { id: 'ada', email: 'ada@example.com', role: 'admin' }
const resource = { type: 'invoice', id: 'inv-1' }
/** Every combination of parts and facets, and texts that JSON escapes outside of them. */
const EVENTS = [
  base,
  { ...base, actor, resource, metadata: { a: 1 }, projectId: project.id },
  { ...base, actor },
  { ...base, resource },
  { ...base, metadata: { 'a "key"\\': 'line\nbreak \u0001 é 🙂' } },
  { ...base, actor: { id: 'ada' }, resource: { id: 'inv-1' } },
  { ...base, actor: { email: 'ada@example.com' }, resource: { type: 'invoice' } },
  { ...base, actor: { role: 'admin' } },
  { ...base, actor: { id: 'ada', role: 'admin' } },
  { ...base, actor: {}, resource: {}, metadata: {} },
  { ...base, actor: { id: 'Zoë 🙂' }, resource: { id: 'é', type: '{}' } },
  { category: 'a "quote" \\ and\ttab', action: 'Ärger\u0001🙂' },
  { ...base, timestamp: '0001-01-01T00:00:00.001Z', metadata: { text: 'x'.repeat(30_000) } },
  { ...base, actor, resource },
]

before(async () => {
  const body = { events: EVENTS }
  const response = await annals.call('POST', '/v1/events/batch', { key, body })
  assert.equal(response.status, 200, response.text)
  assert(
    response.json.results.every(({ id }: { id?: string }) => id),
    response.text,
  )
})

/** The seq and the hash of the last event that is confirmed without the slower check. */
async function confirmedBy(client: Database, eventsPerRead: number, id = workspaceId) {
  const toSeq = EVENTS.length
  const stretch = { workspaceId: id, head: EMPTY_HEAD, toSeq, eventsPerRead, owner: SERVICE }
  const hashes: string[] = []
  let head = EMPTY_HEAD
  for await (head of confirmRows(client, stretch, ({ hash }) => {
    hashes.push(hash.toString('hex'))
  })) {
    assert.equal(head.hash, hashes.at(-1))
  }
  return { ...head, hashes }
}

test('confirms every kind of event from the bytes of its row', async () => {
  const { entries } = await listChainRun(database.db, { workspaceId, afterSeq: 0, limit: 100 })
  for (const eventsPerRead of [1, 3, 2_000]) {
    const { seq, lastId, hashes } = await confirmedBy(database, eventsPerRead)
    assert.deepEqual([seq, lastId], [EVENTS.length, entries.at(-1)?.event.id])
    assert.deepEqual(
      hashes,
      entries.map(({ event }) => event.hash),
    )
  }
})

/** Each changes the row, whatever it contains. */
const CHANGES = [
  ...['actor_id', 'actor_email', 'resource_type', 'resource_id'].flatMap((facet) => [
    `${facet} = coalesce(${facet}, '') || 'x'`,
    `${facet} = case when ${facet} is null then '' end`,
    `${facet} = case when ${facet} is null then 'admin' else substr(${facet}, 2) end`,
  ]),
  ...['actor', 'resource', 'metadata'].flatMap((part) => [
    `${part} = case when ${part} is null then '{}' end`,
    `${part} = coalesce(${part}, '') || ' '`,
    `${part} = '{"id":"x"}'`,
  ]),
  ...['category', 'action'].flatMap((text) => [`${text} = ${text} || 'x'`, `${text} = ''`]),
  ...['ts', 'received_at'].flatMap((time) => [
    `${time} = ${time} + interval '1 microsecond'`,
    `${time} = ${time} + interval '1 millisecond'`,
    `${time} = 'infinity'`,
  ]),
  ...['company_id', 'project_id', 'trace_id'].map((id) => `${id} = '${newId()}'`),
  ...['hash', 'prev_hash'].flatMap((hash) => [
    `${hash} = set_byte(${hash}, 31, get_byte(${hash}, 31) # 1)`,
    `${hash} = substr(${hash}, 2)`,
    `${hash} = ${hash} || '\\x00'`,
  ]),
  `sealed = sealed || ' '`,
  `sealed = case when sealed = '{}' then '{"actor":""}' else '{}' end`,
  `salts = salts || ' '`,
  `salts = case when salts = '{}' then '{"actor":""}' else '{}' end`,
  `seq = seq + 1000`,
  `id = '00000000-0000-7000-8000-000000000000'`,
]

test('does not confirm a row that was changed, whatever the change', async () => {
  await tamperWith(annals.database.connection, 'savepoint unchanged', async (client) => {
    for (const change of CHANGES) {
      for (let seq = 1; seq < EVENTS.length; seq += 1) {
        const where = `where workspace_id = '${workspaceId}' and seq = ${seq}`
        await sql.raw(`update event set ${change} ${where}`).execute(client.db)
        assert.equal((await confirmedBy(client, 2_000)).seq, seq - 1, `${change} at seq ${seq}`)
        await sql`rollback to unchanged`.execute(client.db)
      }
    }
  })
})

/** Changes fields of an event, and its hash accordingly. */
async function forge(seq: number, changes: Partial<SealedEvent>, check: (seq: number) => void) {
  const run = { workspaceId, afterSeq: seq - 1, limit: 1 }
  const event = (await listChainRun(database.db, run)).entries[0]?.event
  assert(event)
  const forged = { ...event, ...changes }
  const recomputed = recomputeHash(forged)
  assert(recomputed.ok)
  const statement = `
    update event set id = '${forged.id}', seq = ${forged.seq}, action = '${forged.action}',
                     prev_hash = '\\x${forged.prevHash}', hash = '\\x${recomputed.hash}'
     where workspace_id = '${workspaceId}' and seq = ${seq}`
  await tamperWith(annals.database.connection, statement, async (client) => {
    check((await confirmedBy(client, 2_000)).seq)
  })
}

test('does not confirm a row that was forged with its hash, or the row after it', async () => {
  const last = EVENTS.length
  await forge(5, { action: 'forged' }, (seq) => assert.equal(seq, 5))
  await forge(5, { prevHash: '00'.repeat(32) }, (seq) => assert.equal(seq, 4))
  await forge(last, { id: newId(0) }, (seq) => assert.equal(seq, last - 1))
  await forge(last, { seq: last + 1 }, (seq) => assert.equal(seq, last - 1))
})

test('verifies an event whose facets need JSON escapes, which the bytes alone do not confirm', async () => {
  const other = await annals.createCompany()
  const escaped = { ...base, actor: { id: 'a"b\\c' }, resource: { type: 'tab\there' } }
  for (const event of [base, escaped, base, base]) {
    const sent = await annals.call('POST', '/v1/events', { key: other.workspaceKey, body: event })
    assert.equal(sent.status, 201, sent.text)
  }
  assert.equal((await confirmedBy(database, 2_000, other.workspace.id)).seq, 1)
  const verdict = await verifyChain(database, archive, other.workspace.id)
  assert.deepEqual(verdict, { ok: true, workspaceId: other.workspace.id, events: 4 })
})
