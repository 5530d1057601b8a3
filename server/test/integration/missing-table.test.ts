import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { query } from '../harness/database/engine.ts'
import { enroll, withoutTable } from '../harness/dashboard/console.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const HEADER = 'x-service-schema-drift'
/** `npm test` tries a third of the pairs of a list and a missing table, and `npm run fault` all of them. */
const PAIRS_SHARE = rounds(3, 1)
const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())

/** Operations that aren't named after a list but whose pages show the rest of the response. */
const OTHER_LISTS = ['getCompany', 'getEventHistogram', 'getUsage']

type Operations = Record<string, { get?: { operationId: string; responses: Documented } }>
type Documented = Record<'200', { headers: Record<string, unknown> }>

const { paths }: { paths: Operations } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../openapi/dashboard.json'), 'utf8'),
)
const LISTS = Object.entries(paths).flatMap(([path, { get }]) =>
  get && (get.operationId.startsWith('list') || OTHER_LISTS.includes(get.operationId))
    ? [{ path, ...get }]
    : [],
)

test('the OpenAPI document has the schema drift header for every list', () => {
  assert(LISTS.length >= 18, `only ${LISTS.length} lists were found`)
  const without = LISTS.filter(({ responses }) => !(HEADER in responses[200].headers))
  assert.deepEqual(
    without.map(({ operationId }) => operationId),
    [],
  )
})

test('whichever table is missing, every list responds with 200 and names that table or none', async (t) => {
  const company = await annals.createCompany()
  const owner = await enroll(annals, company, 'OWNER')
  const other = await signInAs(annals, company, 'OWNER')
  await storeEvents(annals, company.workspaceKey, [{ category: 'c', action: 'a' }])
  const created = await owner.call('POST', '/dashboard/webhooks', {
    body: { workspaceId: company.workspace.id, url: 'https://hooks.example.com/' },
  })
  const job = { source: 'HOT', format: 'JSONL' }
  assert.equal((await owner.call('POST', '/dashboard/exports', { body: job })).status, 201)
  const urls = LISTS.map(({ operationId, path }) => {
    const url = path
      .replace('{workspaceId}', company.workspace.id)
      .replace('{webhookId}', created.json.id)
    if (operationId === 'listFilterOptions') return `${url}?field=projectId`
    if (operationId === 'listCheckpoints') return `${url}?workspaceId=${company.workspace.id}`
    if (operationId !== 'listEventDeliveries') return url
    return `${url}?workspaceId=${company.workspace.id}&eventSeq=1`
  })
  const tables = await query(
    annals.database.connection,
    `select relname as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  )
  const workspace = `/dashboard/workspaces/${company.workspace.id}`
  const expected = [
    '/dashboard/workspaces project',
    '/dashboard/workspaces webhook',
    `${workspace}/projects project`,
    '/dashboard/integrity verify_run',
    '/dashboard/integrity segment',
    '/dashboard/integrity/checkpoints checkpoint_day',
    '/dashboard/events/filter-options project',
    `/dashboard/webhooks/${created.json.id}/deliveries webhook`,
    '/dashboard/keys api_key_use',
  ]
  const seed = randomInt(PAIRS_SHARE)
  t.diagnostic(`seed ${seed}`)
  const named = new Set<string>()
  for (const [row, { name }] of tables.entries()) {
    const table = String(name)
    await withoutTable(annals, table, async () => {
      // Without the tables of the session, no request is authenticated.
      if ((await other.call('GET', '/dashboard/session')).status !== 200) return
      for (const [column, url] of urls.entries()) {
        const pair = `${url.split('?')[0]} ${table}`
        if ((row + column + seed) % PAIRS_SHARE !== 0 && !expected.includes(pair)) continue
        const { status, headers, text } = await owner.call('GET', url)
        assert.equal(status, 200, `${url} without ${table}: ${text}`)
        const drift = headers.get(HEADER)
        assert(drift === null || drift === table, `${url} without ${table} names ${drift}`)
        if (drift !== null) named.add(pair)
      }
    })
  }
  for (const pair of expected) {
    assert(named.has(pair), `${pair} is not among ${[...named].join(', ')}`)
  }
})
