import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { PgSession } from '../../src/platform/pg/pg-session.ts'
import { PLAIN_SETTINGS } from '../../src/platform/pg/servers.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { type Parameters, search, sendEvents } from '../harness/dashboard/explorer.ts'
import { walkEvents } from '../harness/event/metadata-search.ts'
import { exportRows } from '../harness/export/exports.ts'
import { actionsOf, openSource } from '../harness/http/event-source.ts'
import { eventually } from '../harness/timing/eventually.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

const METADATA = [
  { a: 1, '"': 2 },
  { a: 1, '\\': 2 },
  { a: 1, 'x"': 2 },
  { a: 1, 'x\\': 2 },
  { a: 1, 'x\\': { 'x"': ['\\', { '"': null }] } },
  { a: 1, 'x"': { 'x\\': 'A\n"' } },
  { a: '"', '\\"': 'x' },
]
/** The number of the events that each filter finds. */
const CASES: [path: string, value: string, found: readonly number[]][] = [
  ['"', '2', [0]],
  ['\\', '2', [1]],
  ['x"', '2', [2]],
  ['x\\', '2', [3]],
  ['x\\.x"', '\\', [4]],
  ['x\\.x"."', 'null', [4]],
  ['x".x\\', 'A\n"', [5]],
  ['\\"', 'x', [6]],
]
const TEXTS: [text: string, found: readonly number[]][] = [
  ['"', [6]],
  ['\\', [4]],
  ['a\n"', [5]],
]

/** After this, JSON.parse in V8 13.6 can read one key of a text of the same shape as another. */
function confuseParser(): void {
  for (const key of ['"', '\\', 'x"', 'x\\', '\\"']) {
    JSON.parse(`{"a":1,${JSON.stringify(key)}:2}`)
  }
}

test('the table, live tails, archived searches and exports agree on keys with escapes', async () => {
  const company = await annals.createCompany({ plan: 'PRO' })
  const key = company.workspaceKey
  const filters = [
    ...CASES.map(([path, value, found]) => ({
      query: { [`metadata.${path}`]: value },
      filter: { metadata: { [path]: value } },
      found,
    })),
    ...TEXTS.map(([text, found]) => ({ query: { text }, filter: { q: text }, found })),
  ]
  const sources = await Promise.all(
    filters.map(async ({ query }) => {
      const member = await signInAs(annals, company, 'OWNER')
      return { member, source: await openSource(annals, member, { query: search(query) }) }
    }),
  )
  const actions = (found: readonly number[]) => found.map((nth) => `a${nth}`)
  const events = METADATA.map((metadata, nth) => ({ category: 'c', action: `a${nth}`, metadata }))
  confuseParser()
  await sendEvents(annals, key, events)
  for (const [nth, { source }] of sources.entries()) {
    const { query, found = [] } = filters[nth] ?? {}
    await eventually(() =>
      assert.deepEqual(actionsOf(source), actions(found), JSON.stringify(query)),
    )
    await source[Symbol.asyncDispose]()
  }
  const actionsFrom = (rows: readonly { action: string }[]) => rows.map(({ action }) => action)
  for (const { query, filter, found } of filters) {
    const { text, ...rest }: Parameters = query
    const hot = await walkEvents(annals, key, text === undefined ? rest : { q: text })
    assert.deepEqual(actionsFrom(hot), actions(found), JSON.stringify(query))
    const rows = await exportRows(annals, key, { filters: filter })
    assert.deepEqual(actionsFrom(rows), actions(found), JSON.stringify(query))
  }
  await archiveAll(annals)
  const range = { from: '2000-01-01T00:00:00Z', to: new Date(Date.now() + 60_000).toISOString() }
  for (const [nth, { query, filter, found }] of filters.entries()) {
    confuseParser()
    const archived = { source: 'ARCHIVED', filters: { ...filter, ...range } }
    const rows = await exportRows(annals, key, archived)
    assert.deepEqual(actionsFrom(rows), actions(found), JSON.stringify(query))
    const path = `/dashboard/events/archived${search(query)}`
    const { json, text } = (await sources[nth]?.member.call('GET', path)) ?? {}
    assert(json?.data, text)
    assert.deepEqual(actionsFrom(json.data), actions(found), JSON.stringify(query))
  }
})

/**
 * Once JSON.parse of Node 24 has read an object with the first key, it reads the second key as the first one. So the
 * JSON of one company could change how that of another one is read.
 */
const [FIRST, SECOND] = ['x\\', 'x"']
const HAS_SECOND = /"x\\"":/

test('a saved view keeps its metadata keys, whatever keys the views of other companies have', async () => {
  const VIEWS = '/dashboard/explorer/views'
  const save = async (key: string) => {
    const member = await signInAs(annals, await annals.createCompany(), 'ADMIN')
    const query = { metadata: { a: '1', [key]: '1' } }
    const body = { name: 'A view', workspaceId: null, visibility: 'PRIVATE', query }
    const { status, text } = await member.call('POST', VIEWS, { body })
    assert.equal(status, 201, text)
    return await member.call('GET', VIEWS)
  }
  await save(FIRST)
  assert.match((await save(SECOND)).text, HAS_SECOND)
})

test('every connection reads JSON and arrays of JSON as they are stored', async () => {
  const [first, second] = [FIRST, SECOND].map((key) => JSON.stringify({ a: 1, [key]: [null] }))
  const columns = (text: string) =>
    `${text}::json as json, ${text}::jsonb as jsonb, array[[${text}], [null]]::json[] as jsons,
     array[[${text}], [null]]::jsonb[] as jsonbs`
  const select = `select ${columns(`'${first}'`)} union all select ${columns(`'${second}'`)}`
  const expected = (key: string) => {
    const value = { a: 1, [key]: [null] }
    return { json: value, jsonb: value, jsons: [[value], [null]], jsonbs: [[value], [null]] }
  }
  const rows = [expected(FIRST), expected(SECOND)]
  const pooled = await sql.raw(select).execute(annals.app.database.db)
  assert.deepEqual(pooled.rows, rows)
  await using session = new PgSession({
    connection: annals.database.connection,
    settings: PLAIN_SETTINGS,
    name: 'annals test',
    workMsMax: null,
  })
  assert.deepEqual(await session.use(async (client) => (await client.query(select)).rows), rows)
})
