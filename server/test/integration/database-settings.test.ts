import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { parseKeyText } from '../../src/tenancy/key/key-text.ts'
import { query } from '../harness/database/engine.ts'
import { download, makeExport, parseJsonl } from '../harness/export/exports.ts'
import { assertChainsHold } from '../harness/event/ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { cloneDatabase, createEmptyDatabase } from '../harness/database/template-db.ts'

const database = await cloneDatabase()
after(() => database[Symbol.asyncDispose]())

/** Like `alter role … set`, but only for this database, because other tests share the server. */
async function setForRole(settings: Record<string, string>): Promise<void> {
  const { user, database: name } = database.connection
  const statements = Object.entries(settings).map(
    ([setting, value]) => `alter role ${user} in database ${name} set ${setting} = ${value}`,
  )
  await query(
    // A setting of the test before must not close the session before its statement arrives.
    { ...database.connection, options: '-c idle_session_timeout=0' },
    [`alter role ${user} in database ${name} reset all`, ...statements].join(';'),
  )
}

const HOUR_AGO = () => new Date(Date.now() - 3_600_000)

for (const dateStyle of ['SQL, DMY', 'Postgres, MDY', 'German']) {
  test(`refuses revoked and expired keys when the role's DateStyle is ${dateStyle}`, async () => {
    await setForRole({ datestyle: dateStyle })
    await using annals = await startTestApp({ databaseUrl: database.url })
    const { db } = annals.app.database
    const body = { category: 'c', action: 'a' }
    for (const [column, code] of [
      ['revoked_at', 'invalid_api_key'],
      ['expires_at', 'expired_api_key'],
    ] as const) {
      const { workspaceKey: key } = await annals.createCompany()
      const kid = parseKeyText(key)?.kid ?? ''
      await db
        .updateTable('api_key')
        .set({ [column]: HOUR_AGO() })
        .where('kid', '=', kid)
        .execute()
      const { status, json } = await annals.call('POST', '/v1/events', { key, body })
      assert.deepEqual([status, json.code], [401, code])
    }

    const { workspaceKey: key } = await annals.createCompany()
    const stored = await annals.call('POST', '/v1/events', { key, body })
    assert.equal(stored.status, 201, stored.text)
    const { status, text } = await download(annals, key, await makeExport(annals, key))
    assert.equal(status, 200, text)
    assert.deepEqual(
      parseJsonl(text).map(({ id }) => id),
      [stored.json.id],
    )
  })
}

test('stores, reads and verifies events when the role has other defaults for every setting', async () => {
  await setForRole({
    array_nulls: 'off',
    bytea_output: 'escape',
    client_encoding: 'LATIN1',
    datestyle: 'German',
    default_transaction_isolation: 'serializable',
    extra_float_digits: '-15',
    idle_session_timeout: '100',
    intervalstyle: 'sql_standard',
    quote_all_identifiers: 'on',
    search_path: 'nowhere',
    standard_conforming_strings: 'off',
    timezone: "'Asia/Kathmandu'",
  })
  await using annals = await startTestApp({ databaseUrl: database.url })
  const { workspaceKey: key } = await annals.createCompany()
  const body = { category: 'c\\', action: 'ä→', metadata: { ratio: 0.1234567890123 } }
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => annals.call('POST', '/v1/events', { key, body })),
  )
  for (const { status, text } of responses) assert.equal(status, 201, text)
  const { json } = await annals.call('GET', '/v1/events', { key })
  assert.equal(json.data.length, responses.length)
  assert.deepEqual(json.data[0].metadata, body.metadata)
  assert.deepEqual([json.data[0].category, json.data[0].action], [body.category, body.action])
  await assertChainsHold(annals)
  const { rows } = await sql`
    select current_setting('default_transaction_isolation') as isolation,
           current_setting('DateStyle') as "dateStyle",
           current_setting('idle_session_timeout') as "idleTimeout",
           array['a', null]::text = '{a,NULL}' and '{a,NULL}'::text[] = array['a', null] as "hasNulls"
    `.execute(annals.app.database.db)
  assert.deepEqual(rows, [
    { isolation: 'read committed', dateStyle: 'ISO, MDY', idleTimeout: '0', hasNulls: true },
  ])
})

test('uses the schema public when the login has its own schema', async () => {
  await using own = await createEmptyDatabase()
  await query(own.connection, `create schema ${own.connection.user}`)
  await using annals = await startTestApp({ databaseUrl: own.url })
  const { workspaceKey: key } = await annals.createCompany()
  const body = { category: 'c', action: 'a' }
  assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 201)
  const schemas = await query(
    own.connection,
    `select distinct schemaname from pg_tables where tablename in ('event', 'schema_migration')`,
  )
  assert.deepEqual(schemas, [{ schemaname: 'public' }])
})

test('refuses to start over beside tables in another schema', async () => {
  await using own = await cloneDatabase()
  await query(own.connection, 'alter schema public rename to app; create schema public')
  await assert.rejects(startTestApp({ databaseUrl: own.url }), {
    name: 'OperatorError',
    message: /are in the schema app, but must be in public/,
  })
  assert.deepEqual(
    await query(own.connection, `select from pg_tables where schemaname = 'public'`),
    [],
  )
})

test('names the missing schema', async () => {
  await using own = await createEmptyDatabase()
  await query(own.connection, 'drop schema public')
  await assert.rejects(startTestApp({ databaseUrl: own.url }), {
    name: 'OperatorError',
    message: /has no schema public/,
  })
})

test('commits wait for the disk and the standby even if the role turns that off, and keep a stricter setting', async () => {
  for (const [given, used] of [
    ['off', 'on'],
    ['local', 'on'],
    ['remote_apply', 'remote_apply'],
  ] as const) {
    await setForRole({ synchronous_commit: given })
    await using annals = await startTestApp({ databaseUrl: database.url })
    const { rows } = await sql`show synchronous_commit`.execute(annals.app.database.db)
    assert.deepEqual(rows, [{ synchronous_commit: used }])
  }
})

test('reloading the configuration does not change whether open connections wait for the disk', async () => {
  await setForRole({})
  await using annals = await startTestApp({ databaseUrl: database.url })
  const { rows } = await sql`
    select source from pg_settings where name = 'synchronous_commit'`.execute(
    annals.app.database.db,
  )
  // A reload changes only settings that the session has not set.
  assert.deepEqual(rows, [{ source: 'session' }])
})

test('fails a query whose dates cannot be read, instead of treating them as missing', async () => {
  await setForRole({})
  await using annals = await startTestApp({ databaseUrl: database.url })
  await annals.app.database.db.connection().execute(async (db) => {
    await sql`set datestyle = 'SQL, DMY'`.execute(db)
    for (const value of [
      sql`now()`,
      sql`now()::timestamp`,
      sql`now()::date`,
      sql`now()::timestamptz`,
    ])
      await assert.rejects(sql`select ${value} as at`.execute(db), /is not a date/)
    assert.deepEqual((await sql`select null::timestamptz as at`.execute(db)).rows, [{ at: null }])
    await sql`reset datestyle`.execute(db)
    const { rows } = await sql<{ at: Date }>`
      select timestamptz '2026-03-01 10:00:00.123+02' as at`.execute(db)
    assert.equal(rows[0]?.at.toISOString(), '2026-03-01T08:00:00.123Z')
  })
})
