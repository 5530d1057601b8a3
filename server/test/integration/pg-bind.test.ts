import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as fc from 'fast-check'
import { Client } from 'pg'
import { BindWriter } from '../../src/platform/pg/bind-message.ts'
import { runStatement } from '../../src/platform/pg/pg-statement.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const database = await cloneDatabase()
const client = new Client(database.connection)
await client.connect()
after(async () => {
  await client.end()
  await database[Symbol.asyncDispose]()
})

const same = <T>(value: T): T => value

const writer = new BindWriter()

/** The elements as PostgreSQL parsed them, each as text. */
async function echo(
  type: string,
  write: (writer: BindWriter) => BindWriter,
  print = 'v::text',
): Promise<(string | null)[]> {
  const name = `echo ${type}`
  const text = `select ${print} as text from unnest($1::${type}[]) with ordinality as a (v, n) order by n`
  const rows = await runStatement(client, { name, text }, write(writer.begin(name)).finish())
  return rows.map(([value = null]) => value)
}

/** Any text that PostgreSQL can store: whole characters, no NUL. */
const anyChar = fc
  .oneof(
    fc.integer({ min: 1, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((point) => String.fromCodePoint(point))
const anyText = fc.string({ unit: anyChar, maxLength: 40 })
const RUNS = { numRuns: 40 }

test('any text arrives as sent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(anyText), { maxLength: 20 }), async (texts) => {
      assert.deepEqual(await echo('text', (w: BindWriter) => w.texts(texts, same)), texts)
    }),
    RUNS,
  )
  const awkward = ['', 'NULL', 'null', '{}', '{a,b}', '"', '\\', "'", ',', ' ', '\n\t', '🎈', 'é']
  assert.deepEqual(await echo('text', (w: BindWriter) => w.texts(awkward, same)), awkward)
  const long = ['x'.repeat(300_000), '界'.repeat(100_000), null, '🎈'.repeat(50_000)]
  assert.deepEqual(await echo('text', (w: BindWriter) => w.texts(long, same)), long)
})

test('uuids arrive as sent, with or without hyphens', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(fc.uuid()), { maxLength: 20 }), async (ids) => {
      assert.deepEqual(await echo('uuid', (w: BindWriter) => w.uuids(ids, same)), ids)
      const bare = ids.map((id) => id?.replaceAll('-', '') ?? null)
      assert.deepEqual(await echo('uuid', (w: BindWriter) => w.uuids(bare, same)), ids)
    }),
    RUNS,
  )
})

test('counts arrive exactly, up to the largest that a double can represent', async () => {
  const edges = [0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 53 - 1]
  assert.deepEqual(await echo('bigint', (w: BindWriter) => w.int8s(edges, same)), edges.map(String))
  await fc.assert(
    fc.asyncProperty(fc.array(fc.maxSafeNat()), async (counts) => {
      assert.deepEqual(
        await echo('bigint', (w: BindWriter) => w.int8s(counts, same)),
        counts.map(String),
      )
    }),
    RUNS,
  )
})

test('timestamps of the years 0000 to 9999 arrive to the millisecond', async () => {
  const edges = [
    '0000-01-01T00:00:00.000Z',
    '0000-12-31T23:59:59.999Z',
    '0001-01-01T00:00:00.000Z',
    '1582-10-10T00:00:00.001Z',
    '1969-12-31T23:59:59.999Z',
    '1970-01-01T00:00:00.000Z',
    '1999-12-31T23:59:59.999Z',
    '2000-01-01T00:00:00.000Z',
    '2000-02-29T12:00:00.123Z',
    '9999-12-31T23:59:59.999Z',
  ].map((text) => Date.parse(text))
  const print = '(extract(epoch from v) * 1000)::bigint::text'
  assert.deepEqual(
    await echo('timestamptz', (w: BindWriter) => w.timestamptzs(edges, same), print),
    edges.map(String),
  )
  const anyMs = fc.integer({ min: edges[0] ?? 0, max: edges.at(-1) ?? 0 })
  await fc.assert(
    fc.asyncProperty(fc.array(anyMs, { maxLength: 20 }), async (instants) => {
      const arrived = await echo(
        'timestamptz',
        (w: BindWriter) => w.timestamptzs(instants, same),
        print,
      )
      assert.deepEqual(arrived, instants.map(String))
    }),
    RUNS,
  )
})

test('bytes arrive as their hex digits', async () => {
  const anyHash = fc
    .uint8Array({ minLength: 32, maxLength: 32 })
    .map((bytes) => Buffer.from(bytes).toString('hex'))
  await fc.assert(
    fc.asyncProperty(fc.array(anyHash, { maxLength: 10 }), async (hashes) => {
      const arrived = await echo(
        'bytea',
        (w: BindWriter) => w.hexes(hashes, same, 32),
        `encode(v, 'hex')`,
      )
      assert.deepEqual(arrived, hashes)
    }),
    RUNS,
  )
})

test('an empty array stays empty, and one of nulls keeps its length', async () => {
  for (const [type, array] of [
    ['text', (w: BindWriter) => w.texts([], same)],
    ['uuid', (w: BindWriter) => w.uuids([], same)],
    ['bigint', (w: BindWriter) => w.int8s([], same)],
    ['timestamptz', (w: BindWriter) => w.timestamptzs([], same)],
    ['bytea', (w: BindWriter) => w.hexes([], same, 32)],
  ] as const) {
    assert.deepEqual(await echo(type, array), [], type)
  }
  assert.deepEqual(await echo('text', (w: BindWriter) => w.texts([null, null], same)), [null, null])
  assert.deepEqual(await echo('uuid', (w: BindWriter) => w.uuids([null], same)), [null])
})
