import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { createLogger } from '../../src/platform/logger.ts'
import { Database } from '../../src/platform/pg/database.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { issueKey } from '../../src/tenancy/key/issue-key.ts'
import { startLimitedService } from '../harness/app/limited-service.ts'
import { call, createCompanyIn } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'
import { feedPath } from '../harness/event/feed.ts'
import { RawConnection, type RawResponse } from '../harness/http/raw-http.ts'
import { eventually } from '../harness/timing/eventually.ts'

/** Of each kind. Two kinds are more than the 150 connections. */
const REQUESTS = 100
const WAITING_PER_KEY_MAX = 10
const NEWCOMERS = 20
const EVENT = { category: 'c', action: 'a' }

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const database = stack.use(await cloneDatabase())
const { connection } = database
const { url, metricsUrl } = stack.use(
  await startLimitedService(database, { ANNALS_RATE_LIMITS: 'off' }),
)

const send = (key: string, path: string) =>
  new RawConnection(url).send(
    `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`,
  )

/** On a connection of its own. */
const createEvent = (key: string) =>
  call(`${url}/v1/events`, 'POST', { key, body: EVENT, headers: { connection: 'close' } })

const readMetrics = async () => (await call(`${metricsUrl}/metrics`, 'GET')).text

/** One key can't have enough waiting feed requests. */
async function issueKeys({ company, workspace }: CreatedCompany): Promise<string[]> {
  const logger = createLogger('silent')
  const options = { connection, role: 'annals_serving', connectionsMax: 1, logger } as const
  await using serving = new Database(options)
  const owner = { companyId: company.id, workspaceId: workspace.id, name: 'k', expiresAt: null }
  const keys: string[] = []
  for (let nth = 0; nth < REQUESTS / WAITING_PER_KEY_MAX; nth += 1) {
    const key = await serving.db.transaction().execute((trx) => issueKey(trx, owner, Date.now()))
    keys.push(key.text)
  }
  return keys
}

/** Requests that read the table wait until the end of the block. */
async function lockTable(table: string): Promise<AsyncDisposable> {
  const locker = new Client({ ...connection })
  await locker.connect()
  await locker.query(`begin; lock table ${table} in access exclusive mode`)
  return { [Symbol.asyncDispose]: () => locker.end() }
}

test('a company whose requests take long leaves connections for others, and recovers when they end', async () => {
  const [hostile, other] = [await createCompanyIn(database), await createCompanyIn(database)]
  const keys = await issueKeys(hostile)
  for (const { workspaceKey } of [hostile, other]) {
    assert.equal((await createEvent(workspaceKey)).status, 201)
  }
  await using _pages = await lockTable('segment')
  await using _exports = await lockTable('export_job')
  await using flood = new AsyncDisposableStack()
  const refusals: RawResponse[] = []
  const open = async (...paths: string[]) => {
    for (let nth = 0; nth < REQUESTS; nth += 1) {
      for (const path of paths) {
        const opened = flood.use(send(keys[nth % keys.length] ?? '', path))
        // Those that are refused can be closed for newer connections.
        void opened.response().then(
          (response) => refusals.push(response),
          () => {},
        )
      }
    }
    await eventually(async () =>
      assert.match(await readMetrics(), /^annals_http_connection_open_count 150$/m),
    )
  }

  const { id } = hostile.workspace
  await open(feedPath(id, { after: 1, waitSeconds: 30 }), feedPath(id))
  const own = await createEvent(hostile.workspaceKey)
  assert.equal(own.status, 201, own.text)
  await open('/v1/exports')
  for (let nth = 0; nth < NEWCOMERS; nth += 1) {
    const { status, text } = await createEvent(other.workspaceKey)
    assert.equal(status, 201, text)
  }

  const metrics = await readMetrics()
  assert.match(metrics, /^annals_http_connection_limit_total\{outcome="dropped"\} 0$/m)
  const { status, headers, body } = refusals[0] ?? assert.fail('none was refused')
  assert.deepEqual([status, JSON.parse(body).code], [503, 'overloaded'])
  assert.match(body, /Too many requests from this company are in progress/)
  assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)

  await flood.disposeAsync()
  await eventually(async () => assert.equal((await createEvent(hostile.workspaceKey)).status, 201))
})
