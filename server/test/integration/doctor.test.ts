import assert from 'node:assert/strict'
import { readdirSync, rmSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { runAnnals } from '../harness/app/annals-process.ts'
import { commandEnv, type Source } from '../harness/app/command-env.ts'
import { assertOnly, diagnose, problemsOf } from '../harness/app/doctor.ts'
import { createCompanyIn, startTestApp } from '../harness/app/start-app.ts'
import { query } from '../harness/database/engine.ts'
import { cloneDatabase, type TestDatabase } from '../harness/database/template-db.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'

const OTHER_KEY = Buffer.alloc(32, 7).toString('base64')
const scratch = await mkdtempDisposable(join(tmpdir(), 'annals-doctor-'))
after(() => scratch.remove())

/** The environment of a service on this database, with any free port. */
const serviceEnv = (source: Source) => ({ ...commandEnv(source), ANNALS_PORT: '0' })

/** A migrated database that no service uses, with an archive of its own. */
async function idleDatabase(): Promise<TestDatabase & { env: Record<string, string> }> {
  const database = await cloneDatabase()
  const archive = pathToFileURL(join(scratch.path, database.connection.database))
  const env = serviceEnv({ database, archiveUrl: archive.href })
  // The engine of the tests is tuned for speed, and shared with many programs.
  await query(
    database.connection,
    `alter database ${database.connection.database} set random_page_cost = 1.1`,
  )
  return { ...database, env }
}

/** Rows of all tables and their statistics, as text. */
async function contentOf({ connection }: TestDatabase): Promise<unknown> {
  const tables = await query(
    connection,
    `select c.relname as name
       from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      order by 1`,
  )
  const parts = tables.map(
    ({ name }) =>
      `select '${String(name)}' as name, md5(string_agg(t::text, ',' order by t::text)) as rows from ${String(name)} t`,
  )
  return await query(connection, parts.join(' union all '))
}

/** The preload that moves the clock of a process. */
async function clockAhead(ms: number): Promise<Record<string, string>> {
  const preload = join(scratch.path, `ahead-${ms}.mjs`)
  await writeFile(preload, `const { now } = Date\nDate.now = () => now() + ${ms}\n`)
  return { NODE_OPTIONS: `--import ${preload}` }
}

test('an idle database is healthy, and the command changes neither it nor its archive', async () => {
  await using database = await idleDatabase()
  await createCompanyIn(database)
  const before = await contentOf(database)
  const found = await diagnose(database.env)
  assert.deepEqual(problemsOf(found), [], found.text)
  assert.deepEqual(await contentOf(database), before)
  assert(!readdirSync(scratch.path).includes(database.connection.database))
})

test('another secret key than the one of the database fails, and is not recorded', async () => {
  await using database = await idleDatabase()
  const fingerprints = () => query(database.connection, 'select * from secret_key_identity')
  const first = await diagnose(database.env)
  assert.equal(first.checks.get('secret key')?.status, 'ok')
  assert.deepEqual(await fingerprints(), [])
  await query(
    database.connection,
    `insert into secret_key_identity (fingerprint, created_at) values ('other', now())`,
  )
  const found = await diagnose(database.env)
  assertOnly(found, 'failed', 'secret key', /different secret key than the one/)
})

test('pending and unknown migrations are warnings, and none is applied', async () => {
  await using database = await idleDatabase()
  const { connection } = database
  const [last] = await query(connection, 'select max(version) as version from schema_migration')
  await query(
    connection,
    `delete from schema_migration where version = ${String(last?.['version'])}`,
  )
  const pending = await diagnose(database.env)
  assertOnly(pending, 'warning', 'migrations', /^Pending migrations: \w+\.$/)
  const [kept] = await query(connection, 'select max(version) as version from schema_migration')
  assert.equal(Number(kept?.['version']), Number(last?.['version']) - 1)
  await query(
    connection,
    `insert into schema_migration (version, name, checksum, oldest_program)
     values (${String(last?.['version'])}, 'x', 'x', 1)`,
  )
  const other = await diagnose(database.env)
  assertOnly(other, 'failed', 'database', /created by an unreleased version/)
  await query(connection, `update schema_migration set version = 999 where checksum = 'x'`)
  const newer = await diagnose(database.env)
  assertOnly(newer, 'warning', 'migrations', /migrations that this program doesn't know/)
})

test('a database without tables fails with the command that creates them', async () => {
  await using database = await idleDatabase()
  await query(database.connection, 'drop schema public cascade; create schema public')
  assertOnly(await diagnose(database.env), 'failed', 'database', /no Annals tables.*annals migrate/)
})

test('a role that can change events, or can no longer store them, fails with the statement to run', async () => {
  await using database = await idleDatabase()
  await query(database.connection, 'grant delete on event to annals_serving')
  const more = await diagnose(database.env)
  assertOnly(more, 'failed', 'permissions', /annals_serving can delete rows of event/)
  assert.match(more.checks.get('permissions')?.advice ?? '', /revoke delete on event from annals_/)
  await query(
    database.connection,
    'revoke delete on event from annals_serving; revoke insert on event from annals_serving',
  )
  const less = await diagnose(database.env)
  assertOnly(less, 'failed', 'permissions', /annals_serving can't insert rows of event/)
})

test('server settings that endanger events or slow queries down are named', async () => {
  await using database = await idleDatabase()
  const name = database.connection.database
  const settings = async () => (await diagnose(database.env)).checks.get('server settings')
  const [{ fsync } = {}] = await query(database.connection, 'show fsync')
  if (fsync === 'off') assert.match((await settings())?.message ?? '', /fsync is off/)
  await query(database.connection, `alter database ${name} set default_transaction_read_only = on`)
  assert.match((await settings())?.message ?? '', /read-only/)
})

test('a clock that differs from the one of the database is a warning, and fails above an hour', async () => {
  await using database = await idleDatabase()
  const minutes = await diagnose({ ...database.env, ...(await clockAhead(120_000)) })
  assertOnly(minutes, 'warning', 'clock', /1(19|20)\.\d s ahead of the database's/)
  const hours = await diagnose({ ...database.env, ...(await clockAhead(2 * 3_600_000)) })
  assertOnly(hours, 'failed', 'clock', /ahead of the database's\. Nothing is archived/)
})

test('a backup is missing, recent, old or damaged', async () => {
  await using database = await idleDatabase()
  await createCompanyIn(database)
  const folder = join(scratch.path, 'backup')
  const args = ['--backup', folder]
  const missing = await diagnose(database.env, { args })
  assertOnly(missing, 'failed', 'backup', /has no complete backup/)
  assert.equal((await runAnnals(['backup', '--to', folder], database.env)).code, 0)
  const recent = await diagnose(database.env, { args })
  assert.match(recent.checks.get('backup')?.message ?? '', /is 0 hours old and has 0 events/)
  const later = await diagnose({ ...database.env, ...(await clockAhead(72 * 3_600_000)) }, { args })
  assert.match(later.checks.get('backup')?.message ?? '', /3 days old/)
  assert.equal(later.checks.get('backup')?.status, 'warning')
  await writeFile(join(folder, 'manifest.json'), '{}')
  const damaged = await diagnose(database.env, { args })
  assertOnly(damaged, 'failed', 'backup', /manifest\.json in .* is damaged/)
})

test('an archive that lost its files or its disk fails, and a refused chain too', async () => {
  await using annals = await startTestApp()
  const company = await annals.createCompany()
  const env = serviceEnv(annals)
  const message = async (name: string) => (await diagnose(env)).checks.get(name)?.message ?? ''
  const body = { category: 'auth', action: 'user.login' }
  await annals.call('POST', '/v1/events', { key: company.workspaceKey, body })
  const before = new Date(Date.now() + 60_000).toISOString()
  assert.equal((await runAnnals(['archive', '--before', before], env)).code, 0)
  await eventually(async () => assert.match(await message('checkpoints'), /All events are signed/))
  assert.match(await message('archive'), /newest and the oldest segment.*writable/)
  assert.match(await message('signing key'), /is the one that signs/)
  await query(
    annals.database.connection,
    `update checkpoint set refusal = 'its tail is missing' where workspace_id = '${company.workspace.id}'`,
  )
  const refused = (await diagnose(env)).checks.get('checkpoints')
  assert.match(refused?.message ?? '', /refuses to sign .*its tail is missing/)
  assert.match(refused?.advice ?? '', /annals ledger-fork --workspace/)
  const folder = fileURLToPath(annals.archiveUrl)
  rmSync(join(folder, company.workspace.id), { recursive: true })
  assert.match(await message('archive'), /The catalog lists the segment .*doesn't have it/)
  const [marker = ''] = readdirSync(folder).filter((name) => name.startsWith('annals-archive-'))
  rmSync(join(folder, marker))
  const unmounted = await diagnose(env)
  assert.match(unmounted.checks.get('archive')?.message ?? '', /marker file annals-archive-/)
  assert.doesNotMatch(unmounted.text, /Nothing was archived/)
  const off = (await diagnose(serviceEnv({ ...annals, archiveUrl: '' }))).checks.get('archive')
  assert.match(off?.message ?? '', /No archive is configured.*can't be read/)
})

test('a signing key that would replace the current one is found before the next start', async () => {
  await using annals = await startTestApp({ env: { ANNALS_SIGNING_KEY: OTHER_KEY } })
  const company = await annals.createCompany()
  const env = serviceEnv(annals)
  const signer = async (given: Record<string, string>) =>
    (await diagnose({ ...env, ...given })).checks.get('signing key')
  const body = { category: 'auth', action: 'user.login' }
  await annals.call('POST', '/v1/events', { key: company.workspaceKey, body })
  const next = Buffer.alloc(32, 9).toString('base64')
  await eventually(async () => {
    const current = await signer({ ANNALS_SIGNING_KEY: OTHER_KEY })
    assert.equal(current?.message, 'The signing key of this configuration is the one that signs.')
  })
  const lost = await signer({ ANNALS_SIGNING_KEY: next })
  assert.equal(lost?.status, 'failed')
  assert.match(lost?.message ?? '', /the old one would stop signing at once/)
  const planned = await signer({
    ANNALS_SIGNING_KEY: next,
    ANNALS_SIGNING_KEY_PREVIOUS: OTHER_KEY,
  })
  assert.equal(planned?.status, 'warning')
  assert.match(planned?.message ?? '', /Both keys then sign for 30 days/)
})

test('failing webhooks, late deliveries and missing workers are warnings', async () => {
  await using annals = await startTestApp({ role: 'api' })
  const company = await annals.createCompany()
  const env = serviceEnv(annals)
  const webhookId = await makeWebhook(annals, company, { url: 'https://receiver.example/' })
  const sent = await annals.call('POST', `/v1/webhooks/${webhookId}/test`, {
    key: company.companyKey,
  })
  assert(sent.status < 300, sent.text)
  const fresh = await diagnose(env)
  assert.match(fresh.checks.get('nodes')?.message ?? '', /None does background work/)
  assert.equal(fresh.checks.get('deliveries')?.status, 'ok')
  await query(
    annals.database.connection,
    `update webhook_delivery set due_at = now() - interval '1 hour'`,
  )
  const late = (await diagnose(env)).checks.get('deliveries')
  assert.equal(late?.status, 'warning')
  assert.match(late?.message ?? '', /the oldest for 36\d\d s/)
  await query(annals.database.connection, 'update webhook set failing_since = now()')
  const failing = (await diagnose(env)).checks.get('webhooks')
  assert.equal(failing?.status, 'warning')
  assert.match(failing?.message ?? '', /0 webhooks deliver, 1 fail/)
})
