import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { cp, mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readBackupManifest } from '../../src/outlet/backup/manifest.ts'
import { restoreLedger } from '../../src/outlet/backup/restore-ledger.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database } from '../../src/platform/pg/database.ts'
import { migrate } from '../../src/platform/pg/migrate.ts'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { commandEnv } from '../harness/app/command-env.ts'
import { backUp, createRestoreTarget, lockTable, readAllRows } from '../harness/database/backup.ts'
import { query } from '../harness/database/engine.ts'
import { assertChainsHold } from '../harness/event/ledger.ts'
import { createSigner, sendEvents, signWhole } from '../harness/proof/proof.ts'

/** An API node neither signs nor archives on its own, so the tests control both. */
const startApi = (databaseUrl?: string, env: Record<string, string> = {}) =>
  startTestApp({
    role: 'api',
    env: { ANNALS_RATE_LIMITS: 'off', ...env },
    ...(databaseUrl !== undefined && { databaseUrl }),
  })

const folders = new AsyncDisposableStack()
after(() => folders.disposeAsync())
const newFolder = async (): Promise<string> =>
  folders.use(await mkdtempDisposable(join(tmpdir(), 'annals-backup-'))).path

async function createLedger(events: number): Promise<{
  annals: TestApp
  tenant: Awaited<ReturnType<TestApp['createCompany']>>
}> {
  const annals = folders.use(await startApi())
  const tenant = await annals.createCompany({ workspaces: ['First', 'Second'] })
  for (const { workspaceKey } of tenant.workspaces) await sendEvents(annals, workspaceKey, events)
  for (const { id } of tenant.workspaces) await signWhole(createSigner(annals), id)
  return { annals, tenant }
}

async function archiveBefore(
  annals: TestApp,
  before: Date = new Date(Date.now() + 1_000),
): Promise<void> {
  const command = ['archive', '--before', before.toISOString()]
  const { code, stderr } = await runCommandInHost(command, commandEnv(annals))
  assert.equal(code, 0, stderr)
}

const countEvents = async (annals: Pick<TestApp, 'database'>): Promise<number> =>
  Number((await query(annals.database.connection, 'select count(*) as n from event'))[0]?.['n'])

test('a restored ledger has every row, passes verification, and accepts new events', async () => {
  const { annals, tenant } = await createLedger(300)
  const [first, second] = tenant.workspaces
  assert(first && second)
  await archiveBefore(annals)
  await sendEvents(annals, first.workspaceKey, 20)
  await signWhole(createSigner(annals), first.id)
  await annals.call('POST', '/v1/events', {
    key: second.workspaceKey,
    body: { category: 'ü', action: '\\N\t\n"', metadata: { text: '🙂\\' }, idempotencyKey: 'k' },
  })
  const folder = await newFolder()
  const result = await backUp(annals, folder)
  assert.equal(result.archive, 'copied')
  assert.equal(result.events, 621)
  assert.equal(result.archivedEvents, 600)

  await using target = await createRestoreTarget()
  const expected = await readAllRows(annals.database)
  const { code, stdout, stderr } = await target.restore(folder)
  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /\nok: 621 events in 3 workspaces, every chain is intact\nok: the tiles/)
  assert.match(stdout, /\nRestored and verified 621 events of 3 workspaces, as of 20/)
  assert.match(stdout, /was restored too, .* compare with a witness/)
  const restored = await readAllRows(target.database)
  assert(expected.size > 40)
  assert.equal(expected.get('event')?.length, 21)
  for (const [name, rows] of expected) assert.deepEqual(restored.get(name), rows, name)

  await using copy = await startApi(target.database.url, { ANNALS_ARCHIVE_URL: target.archiveUrl })
  const replay = await copy.call('POST', '/v1/events', {
    key: second.workspaceKey,
    body: { category: 'ü', action: 'other', idempotencyKey: 'k' },
  })
  assert.equal(replay.headers.get('x-idempotent-replay'), 'true')
  await sendEvents(copy, first.workspaceKey, 10)
  assert.equal(await signWhole(createSigner(copy), first.id), 'done')
  // One more for the verdict in the audit log.
  assert.equal(await assertChainsHold(copy), 632)
})

test('a backup during ingest and signing restores to a ledger that passes every check', async () => {
  const { annals, tenant } = await createLedger(50)
  const [first, second] = tenant.workspaces
  assert(first && second)
  let sent = 0
  const stop = new AbortController()
  const ingest = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await sendEvents(annals, first.workspaceKey, 7)
      sent += 7
    }
  }
  const running = ingest()
  const folder = await newFolder()
  // Waits after the snapshot, so that events are signed that the backup doesn't have.
  const lock = await lockTable(annals.database, 'webhook')
  const backup = new AnnalsProcess(['backup', '--to', folder, '--json'], commandEnv(annals))
  await lock.waiting()
  await sendEvents(annals, second.workspaceKey, 300)
  const late = await annals.createCompany()
  await sendEvents(annals, late.workspaceKey, 3)
  for (const { id } of [...tenant.workspaces, late.workspace]) {
    await signWhole(createSigner(annals), id)
  }
  await lock[Symbol.asyncDispose]()
  const { code, stdout, stderr } = await backup.exited
  stop.abort()
  await running
  assert.equal(code, 0, stderr)
  const { events } = JSON.parse(stdout)
  assert(events >= 100 && events < 100 + sent, stdout)

  await using target = await createRestoreTarget()
  const restored = await target.restore(folder)
  assert.equal(restored.code, 0, restored.stdout + restored.stderr)
  assert.match(restored.stdout, /\nok: the tiles and checkpoints of 2 signed workspaces match/)
  const all = new Set((await readAllRows(annals.database)).get('event'))
  const rows = (await readAllRows(target.database)).get('event') ?? []
  assert.deepEqual([rows.length, rows.filter((row) => !all.has(row))], [events, []])
  // The signer continues from what the restored ledger has.
  await using copy = await startApi(target.database.url, { ANNALS_ARCHIVE_URL: target.archiveUrl })
  for (const { id, workspaceKey } of tenant.workspaces) {
    await sendEvents(copy, workspaceKey, 3)
    assert.equal(await signWhole(createSigner(copy), id), 'done')
  }
})

test('never backs up to a folder with files of others, or one that the service uses', async () => {
  const { annals } = await createLedger(3)
  const archive = fileURLToPath(annals.archiveUrl)
  const before = readdirSync(archive, { recursive: true }).length
  const foreign = await newFolder()
  mkdirSync(join(foreign, 'tables'))
  writeFileSync(join(foreign, 'tables', 'mine'), 'x')
  const link = join(await newFolder(), 'link')
  symlinkSync(archive, link)
  for (const [to, problem] of [
    [foreign, /contains other files than a backup/],
    [archive, /which the service uses/],
    [join(archive, 'new', 'backup'), /which the service uses/],
    [join(link, 'backup'), /which the service uses/],
    [dirname(archive), /contains other files|which the service uses/],
  ] as const) {
    const { code, stderr } = await runCommandInHost(['backup', '--to', to], commandEnv(annals))
    assert.equal(code, 1, to)
    assert.match(stderr, problem)
  }
  assert.deepEqual(readdirSync(join(foreign, 'tables')), ['mine'])
  assert.equal(readdirSync(archive, { recursive: true }).length, before)
})

test('a second backup copies only new events, and drops those that were archived', async () => {
  const { annals, tenant } = await createLedger(200)
  const folder = await newFolder()
  const [first] = tenant.workspaces
  assert(first)
  const eventFiles = () =>
    readdirSync(join(folder, 'events')).filter((name) => name.endsWith('.zst'))
  await backUp(annals, folder)
  const [oldest = ''] = eventFiles()
  const { ino } = statSync(join(folder, 'events', oldest))
  for (let sent = 0; sent < 5; sent += 1) await sendEvents(annals, first.workspaceKey, 1)
  await backUp(annals, folder)
  assert.equal(eventFiles().length, 2)
  assert.equal(statSync(join(folder, 'events', oldest)).ino, ino)
  const manifest = await readBackupManifest(folder)
  assert.equal(manifest?.tables.find(({ name }) => name === 'event')?.rows, 405)

  // The second file has events before and after the time, so it is still needed.
  const [row] = await query(
    annals.database.connection,
    `select received_at as at from event where workspace_id = '${first.id}' and seq = 205`,
  )
  assert(row?.['at'] instanceof Date)
  await archiveBefore(annals, row['at'])
  const left = await countEvents(annals)
  assert(left >= 1 && left < 5, String(left))
  await sendEvents(annals, first.workspaceKey, 3)
  await backUp(annals, folder)
  assert.equal(eventFiles().includes(oldest), false)
  assert.equal(eventFiles().length, 2)
  await using target = await createRestoreTarget()
  const { code, stdout, stderr } = await target.restore(folder)
  assert.equal(code, 0, stdout + stderr)
  assert.deepEqual(await readAllRows(target.database), await readAllRows(annals.database))
})

test('starts over if the archiver drops a partition that the snapshot needs', async () => {
  const { annals, tenant } = await createLedger(60)
  const run = (statement: string) => query(annals.database.connection, statement)
  assert.equal(tenant.workspaces.length, 2)
  // As it was before the events were archived.
  await run('create table event_before as table event; create table segment_after as table segment')
  await archiveBefore(annals)
  await run(
    `insert into segment_after table segment; truncate segment; insert into event table event_before`,
  )
  const [row] = await run(
    `select relid::regclass::text as name from pg_partition_tree('event') as part
      where isleaf and (xpath('//n/text()', query_to_xml('select count(*) as n from ' || relid::regclass,
                                                         false, true, '')))[1]::text <> '0'`,
  )
  const name = String(row?.['name'])
  assert.match(name, /^event_\d{4}_\d{2}$/)

  const folder = await newFolder()
  const lock = await lockTable(annals.database, 'chain_head')
  const backup = new AnnalsProcess(['backup', '--to', folder, '--json'], commandEnv(annals))
  await lock.waiting('select h.workspace_id')
  await run(
    `insert into segment table segment_after; drop table ${name}, event_before, segment_after`,
  )
  await run(`select ensure_event_partition('${name.slice(6).replace('_', '-')}-01T00:00:00Z')`)
  await lock[Symbol.asyncDispose]()
  const { code, stdout, stderr } = await backup.exited
  assert.equal(code, 0, stderr)
  assert.deepEqual([JSON.parse(stdout).events, JSON.parse(stdout).archivedEvents], [120, 120])
  await using target = await createRestoreTarget()
  const restored = await target.restore(folder)
  assert.equal(restored.code, 0, restored.stdout + restored.stderr)
})

test('a flipped byte in any file is refused, and the database stays empty', async () => {
  const { annals } = await createLedger(20)
  const folder = await newFolder()
  await backUp(annals, folder)
  await using target = await createRestoreTarget()
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.zst$|manifest\.json$/.test(name),
  )
  const kinds = ['events/', 'tables/.*-api_key\\.', 'signer/', 'manifest\\.json']
  for (const kind of kinds) {
    const path = files.find((name) => new RegExp(kind).test(name)) ?? assert.fail(kind)
    const broken = await newFolder()
    await cp(folder, broken, { recursive: true })
    const bytes = readFileSync(join(broken, path))
    const at = Math.floor(bytes.length / 2)
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
    writeFileSync(join(broken, path), bytes)
    for (const args of [['--check-only'], []]) {
      const { code, stdout, stderr } = await target.restore(broken, ...args)
      assert.deepEqual([code, stdout], [1, ''], path)
      assert.match(stderr, new RegExp(`^annals: [^\n]*${path.replaceAll('.', '\\.')}[^\n]*damaged`))
    }
  }
  assert.equal((await target.restore(folder, '--check-only')).code, 0)
})

test('a file that is damaged while it is loaded, or another schema, leaves the database empty', async () => {
  const { annals } = await createLedger(20)
  const folder = await newFolder()
  await backUp(annals, folder)
  const manifest = await readBackupManifest(folder)
  assert(manifest)
  // The file is as it was, but it isn't the one that was backed up.
  const files = manifest.files.map((file) =>
    file.path.startsWith('events/') ? { ...file, sha256: '0'.repeat(64) } : file,
  )
  await using target = await createRestoreTarget()
  const { connection } = target.database
  const logger = createLogger('silent')
  await migrate({ connection, logger })
  await using database = new Database({ connection, role: 'owner', connectionsMax: 1, logger })
  const restoreAs = (changed: typeof manifest) =>
    restoreLedger({
      database,
      folder,
      manifest: changed,
      restoreObjects: async () => {},
      onProgress: () => {},
    })
  await assert.rejects(
    restoreAs({ ...manifest, files }),
    /The file events\/.* of the backup is damaged/,
  )
  const migrations = manifest.migrations.slice(0, -1)
  await assert.rejects(
    restoreAs({ ...manifest, migrations }),
    /the backup has schema version \d+, but this release and database have \d+/,
  )
  const rows = await readAllRows(target.database)
  assert.deepEqual([...rows.values()].flat(), [])
})

test('refuses a database with rows, another secret key, and a folder without a backup', async () => {
  const { annals } = await createLedger(5)
  const folder = await newFolder()
  await backUp(annals, folder)
  const restore = async (from: string, env: Record<string, string>) =>
    await runCommandInHost(['restore', '--from', from], env)
  const before = await readAllRows(annals.database)
  const filled = await restore(folder, commandEnv(annals))
  assert.deepEqual([filled.code, filled.stdout], [1, ''])
  assert.match(filled.stderr, /Nothing was restored, because the database is not empty/)
  assert.deepEqual(await readAllRows(annals.database), before)

  await using target = await createRestoreTarget()
  const otherKey = { ANNALS_SECRET_KEY: Buffer.alloc(32, 1).toString('base64') }
  const wrong = await restore(folder, { ...commandEnv(target), ...otherKey })
  assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
  assert.match(
    wrong.stderr,
    /This is not the secret key of the backup: .* fingerprint [0-9a-f]{16}/,
  )
  const file = join(await newFolder(), 'file')
  writeFileSync(file, '')
  const denied = await runCommandInHost(
    ['backup', '--to', join(file, 'inside')],
    commandEnv(annals),
  )
  assert.match(denied.stderr, /^annals: The folder [^\n]* can't be used \(ENOTDIR\)\.\n$/)
  const none = await target.restore(await newFolder())
  assert.match(none.stderr, /has no complete backup/)
})

test('refuses to mix two ledgers in one folder', async () => {
  const [one, other] = [await createLedger(5), await createLedger(5)]
  const folder = await newFolder()
  await backUp(one.annals, folder)
  const command = ['backup', '--to', folder]
  const { code, stderr } = await runCommandInHost(command, commandEnv(other.annals))
  assert.equal(code, 1)
  assert.match(stderr, /has a backup of another ledger: event 5 of workspace/)
  // The same ledger, but an event that was backed up has another hash now.
  const [first] = one.tenant.workspaces
  await sendEvents(one.annals, first?.workspaceKey ?? '', 1)
  await query(
    one.annals.database.connection,
    `update event set hash = decode(repeat('00', 32), 'hex')
      where workspace_id = '${first?.id}' and seq = 5`,
  )
  const changed = await runCommandInHost(command, commandEnv(one.annals))
  assert.match(changed.stderr, new RegExp(`event 5 of workspace ${first?.id} is different`))
  assert.equal((await runCommandInHost(['restore', '--from', folder, '--check-only'])).code, 0)
})

test('restores a backup that is older than what was signed, and warns the operator', async () => {
  const { annals, tenant } = await createLedger(5)
  const [first] = tenant.workspaces
  assert(first)
  const folder = await newFolder()
  await backUp(annals, folder, '--without-archive')
  await sendEvents(annals, first.workspaceKey, 4)
  await signWhole(createSigner(annals), first.id)
  const late = await annals.createCompany()
  await sendEvents(annals, late.workspaceKey, 2)
  await signWhole(createSigner(annals), late.workspace.id)

  await using target = await createRestoreTarget(annals.archiveUrl)
  const { code, stdout, stderr } = await target.restore(folder)
  assert.equal(code, 1, stdout)
  assert.match(stdout, new RegExp(`LOST workspace ${late.workspace.id}: 2 events were signed`))
  assert.match(stdout, new RegExp(`BROKEN workspace ${first.id}, its signed tree: .* has 9 events`))
  assert.match(stderr, /^annals: The backup was loaded, but .* annals ledger-fork/)
  assert.equal(await countEvents(target), 11)
})
