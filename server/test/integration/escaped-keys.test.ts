import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { PgSession } from '../../src/platform/pg/pg-session.ts'
import { PLAIN_SETTINGS } from '../../src/platform/pg/servers.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { search, sendEvents } from '../harness/dashboard/explorer.ts'
import { download, makeExport } from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

/**
 * Once JSON.parse of Node 24 has read an object with the first key, it reads the second key as the first one. So the
 * JSON of one company could change how that of another one is read.
 */
const [FIRST, SECOND] = ['x\\', 'x"']
const DAY_MS = 86_400_000
const HAS_SECOND = /"x\\"":/

test("filters find a company's event, hot and archived, whatever keys other companies have", async () => {
  const today = {
    from: new Date(Date.now() - DAY_MS).toISOString(),
    to: new Date(Date.now() + DAY_MS).toISOString(),
  }
  const createWith = async (path: string, value: string) => {
    const { workspaceKey } = await annals.createCompany({ plan: 'PRO' })
    const event = { category: 'c', action: 'a', metadata: { a: 1, [path]: value } }
    const [id = ''] = await sendEvents(annals, workspaceKey, [event])
    return { key: workspaceKey, path, value, id }
  }
  const assertFound = async ({ key, path, value, id }: Sent, source: 'HOT' | 'ARCHIVED') => {
    for (const filters of [
      { metadata: { [path]: value } },
      { metadata: { [path]: value, a: '1' } },
      { hasMetadata: [path] },
      { q: value },
    ]) {
      const jobId = await makeExport(annals, key, { source, filters: { ...today, ...filters } })
      const { text } = await download(annals, key, jobId)
      assert(text.includes(id), `${source} ${JSON.stringify(filters)}`)
    }
  }
  const assertListed = async ({ key, path, value, id }: Sent) => {
    for (const filter of [{ [`metadata.${path}`]: value }, { hasMetadata: path }, { q: value }]) {
      const { text } = await annals.call('GET', `/v1/events${search(filter)}`, { key })
      assert(text.includes(id), `${JSON.stringify(filter)}: ${text}`)
    }
  }
  const companies = [await createWith(FIRST, 'one'), await createWith(SECOND, 'two')]
  for (const company of companies) await assertListed(company)
  for (const company of companies) await assertFound(company, 'HOT')
  await archiveAll(annals)
  for (const company of companies) await assertFound(company, 'ARCHIVED')
})

type Sent = { key: string; path: string; value: string; id: string }

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
