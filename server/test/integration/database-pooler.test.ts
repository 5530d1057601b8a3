import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { OperatorError } from '../../src/errors.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { hasPgbouncer, startPgbouncer } from '../harness/database/pgbouncer.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const database = await cloneDatabase()
after(() => database[Symbol.asyncDispose]())
const proxy = await PgProxy.listen(database.connection)
after(() => proxy[Symbol.asyncDispose]())
const url = proxy.urlTo(database.connection)
const skip = hasPgbouncer() ? false : 'no PgBouncer is installed'

const refusal = (pattern: RegExp) => (error: unknown) => {
  assert(error instanceof OperatorError, String(error))
  assert.match(error.message, pattern)
  return true
}

test('refuses to start, with a clear message, behind a pooler that drops connection settings', async () => {
  proxy.dropsSettings = true
  const start = startTestApp({ databaseUrl: url })
  await assert.rejects(
    start,
    refusal(/^The database can't be used: 127\.0\.0\.1:\d+ ignores connection settings/),
  )
  proxy.dropsSettings = false
})

test('stores nothing as the owner if the URL later points to such a pooler, and recovers', async () => {
  await using annals = await startTestApp({ databaseUrl: url })
  const { workspaceKey: key } = await annals.createCompany()
  const send = () =>
    annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })
  assert.equal((await send()).status, 201)

  proxy.dropsSettings = true
  proxy.cutAll()
  await eventually(async () => assert.equal((await annals.call('GET', '/ready')).status, 503))
  for (let nth = 0; nth < 3; nth += 1) {
    const { status, json } = await send()
    assert.deepEqual([status, json.code], [503, 'unavailable'])
  }

  proxy.dropsSettings = false
  await eventually(async () => assert.equal((await send()).status, 201))
})

test('settings in the URL do not replace the role of the service', async () => {
  const options = encodeURIComponent('-c work_mem=8MB')
  await using annals = await startTestApp({ databaseUrl: `${url}?options=${options}` })
  const { db } = annals.app.database
  const { rows } = await eventually(() =>
    sql`select current_user as role, current_setting('work_mem') as memory`.execute(db),
  )
  assert.deepEqual(rows, [{ role: 'annals_serving', memory: '8MB' }])
})

test(
  'refuses to start, with a clear message, behind PgBouncer in transaction mode',
  { skip },
  async () => {
    await using strict = await startPgbouncer({ ...database.connection, port: proxy.port })
    await assert.rejects(
      startTestApp({ databaseUrl: strict.url }),
      refusal(/unsupported startup parameter: options.* address of PostgreSQL itself/),
    )
    const ignoring = ['ignore_startup_parameters = options, statement_timeout']
    await using lax = await startPgbouncer({ ...database.connection, port: proxy.port }, ignoring)
    await assert.rejects(
      startTestApp({ databaseUrl: lax.url }),
      refusal(/ignores connection settings.* address of PostgreSQL itself/),
    )
  },
)
