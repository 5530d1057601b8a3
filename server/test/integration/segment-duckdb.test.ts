import assert from 'node:assert/strict'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

import { DuckDBConnection } from '@duckdb/node-api'

import { sealEvent } from '../../src/ledger/chain.ts'
import { createSaltSource, parsePartTexts, SALT_BYTES } from '../../src/ledger/commitment.ts'
import { EMPTY_HEAD, headAfter, type SealedEvent } from '../../src/ledger/event.ts'
import { encodeSegment } from '../../src/ledger/segment/segment.ts'
import { newId } from '../../src/platform/id.ts'

/** DuckDB shares no code with us, so what it can read, other tools can read too. */
const ROWS = 12_000
const START_MS = Date.parse('2026-01-01T00:00:00Z')
const FAR_OFF_MS = ['0000-01-01', '0001-01-01', '1582-10-10', '1969-12-31', '9999-12-31'].map(
  (day) => Date.parse(`${day}T23:59:59.999Z`),
)
/** In UTF-16 the first sorts before the second, in UTF-8 after it. */
const CATEGORIES = ['\u{1f600}', '\ufb33', 'auth', '\ufeffmark', 'new\nline', '']

const events = chain()
const folder = mkdtempDisposableSync(join(tmpdir(), 'annals-test-'))
const path = join(folder.path, 'segment.parquet')
writeFileSync(path, await encodeSegment(events))
const connection = await DuckDBConnection.create()
after(() => {
  connection.closeSync()
  folder.remove()
})

async function query(sql: string): Promise<Record<string, unknown>[]> {
  return (await connection.runAndReadAll(sql, { path })).getRowObjects()
}

test('DuckDB knows the type of every column', async () => {
  const columns = await query('describe select * from read_parquet($path)')
  assert.deepEqual(
    Object.fromEntries(columns.map((column) => [column['column_name'], column['column_type']])),
    {
      seq: 'BIGINT',
      id: 'VARCHAR',
      timestamp: 'TIMESTAMP WITH TIME ZONE',
      receivedAt: 'TIMESTAMP WITH TIME ZONE',
      companyId: 'VARCHAR',
      workspaceId: 'VARCHAR',
      projectId: 'VARCHAR',
      category: 'VARCHAR',
      action: 'VARCHAR',
      actor: 'VARCHAR',
      resource: 'VARCHAR',
      metadata: 'VARCHAR',
      traceId: 'VARCHAR',
      actorSalt: 'BLOB',
      resourceSalt: 'BLOB',
      metadataSalt: 'BLOB',
      sealedErased: 'VARCHAR',
    },
  )
})

test('DuckDB reads every value of every column', async () => {
  const rows = await query(`
    select * replace (
      epoch_ms("timestamp") as "timestamp", epoch_ms("receivedAt") as "receivedAt",
      lower(hex("actorSalt")) as "actorSalt", lower(hex("resourceSalt")) as "resourceSalt",
      lower(hex("metadataSalt")) as "metadataSalt",
      -- The client drops U+FEFF from the front of a text.
      lower(hex(encode(category))) as category)
    from read_parquet($path) order by seq`)
  assert.equal(rows.length, events.length)
  for (const [index, event] of events.entries()) {
    const salts = parsePartTexts(event.salts, SALT_BYTES * 2) ?? {}
    assert.deepEqual(
      { ...rows[index] },
      {
        seq: BigInt(event.seq),
        id: event.id,
        timestamp: BigInt(event.timestampMs),
        receivedAt: BigInt(event.receivedAtMs),
        companyId: event.companyId,
        workspaceId: event.workspaceId,
        projectId: event.projectId,
        category: Buffer.from(event.category).toString('hex'),
        action: event.action,
        actor: event.actor,
        resource: event.resource,
        metadata: event.metadata,
        traceId: event.traceId,
        actorSalt: salts.actor ?? null,
        resourceSalt: salts.resource ?? null,
        metadataSalt: salts.metadata ?? null,
        sealedErased: event.actor === null ? commitmentToActor(event) : null,
      },
    )
  }
})

test('DuckDB can query the JSON of the parts', async () => {
  const [row] = await query(
    `select count(*) as n from read_parquet($path) where actor->>'$.id' = 'u1234'`,
  )
  assert.equal(row?.['n'], 1n)
})

test('DuckDB prunes by statistics that are correct for every text and time', async () => {
  for (const category of CATEGORIES) {
    const [row] = await query(
      `select count(*) as n from read_parquet($path) where category = '${category}'`,
    )
    assert.equal(row?.['n'], BigInt(events.filter((event) => event.category === category).length))
  }
  const since = new Date(START_MS + 10_500_000).toISOString()
  const [row] = await query(
    `select count(*) as n from read_parquet($path) where "timestamp" >= timestamptz '${since}'`,
  )
  const expected = events.filter(({ timestampMs }) => timestampMs >= START_MS + 10_500_000)
  assert.equal(row?.['n'], BigInt(expected.length))
})

test('every column is compressed with zstd, and row groups are limited', async () => {
  const chunks = await query('select * from parquet_metadata($path)')
  assert.deepEqual(new Set(chunks.map((chunk) => chunk['compression'])), new Set(['ZSTD']))
  const seqs = chunks.filter((chunk) => chunk['path_in_schema'] === 'seq')
  assert.deepEqual(
    seqs.map((chunk) => [chunk['stats_min_value'], chunk['stats_max_value']]),
    [
      ['1', '2500'],
      ['2501', '5000'],
      ['5001', '7500'],
      ['7501', '10000'],
      ['10001', '12000'],
    ],
  )
  for (const name of ['timestamp', 'receivedAt', 'category', 'action', 'projectId']) {
    const column = chunks.filter((chunk) => chunk['path_in_schema'] === name)
    assert(column.every((chunk) => typeof chunk['stats_min_value'] === 'string', name))
    assert(column.every((chunk) => typeof chunk['stats_max_value'] === 'string', name))
  }
})

test('the footer contains the position of the segment in the chain', async () => {
  const entries = await query(
    'select decode(key) as key, decode(value) as value from parquet_kv_metadata($path)',
  )
  const values = Object.fromEntries(entries.map(({ key, value }) => [key, value]))
  assert.equal(values['annals.version'], '1')
  assert.equal(values['annals.firstSeq'], '1')
  assert.equal(values['annals.lastSeq'], String(ROWS))
  assert.equal(values['annals.firstPrevHash'], EMPTY_HEAD.hash)
  assert.equal(values['annals.lastHash'], events.at(-1)?.hash)
})

function chain(): SealedEvent[] {
  const nextSalts = createSaltSource()
  const tenant = { companyId: newId<'company'>(), workspaceId: newId<'workspace'>() }
  const projectId = newId<'project'>()
  let head = EMPTY_HEAD
  return Array.from({ length: ROWS }, (_, index) => {
    const receivedAtMs = START_MS + 1_000 * index
    const event = sealEvent(
      head,
      {
        ...tenant,
        projectId: index % 3 === 0 ? null : projectId,
        timestampMs: (index % 1_000 === 7 ? FAR_OFF_MS[(index / 1_000) | 0] : null) ?? receivedAtMs,
        receivedAtMs,
        category: CATEGORIES[index % CATEGORIES.length] ?? '',
        // Longer than the 16 bytes that statistics keep, and cut within a character.
        action: `${'€'.repeat(8)}.${index}`,
        traceId: index % 2 === 0 ? null : '4bf92f3577b34da6a3ce929d0e0e4736',
        actor: `{"email":"ada@example.com","id":"u${index}"}`,
        metadata: index % 5 === 0 ? null : `{"text":"\\u0001\\"\\\\ \u{1f600}","n":1e+21}`,
        resource: '{"id":"s1","type":"session"}',
      },
      { id: newId(receivedAtMs), salts: nextSalts() },
    )
    head = headAfter(event)
    return index % 100 === 99 ? eraseActor(event) : event
  })
}

function eraseActor(event: SealedEvent): SealedEvent {
  return { ...event, actor: null, salts: event.salts.replace(/"actor":"[0-9a-f]{32}",/, '') }
}

function commitmentToActor({ sealed }: SealedEvent): string {
  const { actor } = parsePartTexts(sealed, 64) ?? {}
  return `{"actor":"${actor}"}`
}
