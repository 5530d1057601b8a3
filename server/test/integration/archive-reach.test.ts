import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtempDisposable, readdir, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { pino } from 'pino'
import { archiveEvents as archiveCommand } from '../../src/command/archive.ts'
import { parseConfig } from '../../src/config.ts'
import { OperatorError } from '../../src/errors.ts'
import { archiveLedger } from '../../src/outlet/archive/archive-ledger.ts'
import { systemClock } from '../../src/platform/time/clock.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import { Database } from '../../src/platform/pg/database.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { download, makeExport, readJob, storeEvents } from '../harness/export/exports.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const logger = createLogger('silent')
const lines: Record<string, unknown>[] = []
const log = pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line)) })
const { clock, advance } = manualClock(Date.now() - 400 * DAY_MS)
/** A node with an external database and no ANNALS_ARCHIVE_URL. */
const bare = await startTestApp({ clock, hasArchive: false, logger: log })
after(() => bare[Symbol.asyncDispose]())
/** A node that archives. */
const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())
await using data = await mkdtempDisposable(join(tmpdir(), 'annals-data-'))

const envOf = ({ database }: TestApp, more: Record<string, string> = {}) => ({
  ANNALS_DATABASE_URL: database.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  ANNALS_DATA_DIR: data.path,
  ...more,
})
const newestKey = async ({ database }: TestApp): Promise<string> => {
  const rows = await query(
    database.connection,
    'select object_key from segment order by created_at, last_seq',
  )
  return String(rows.at(-1)?.['object_key'])
}
const countEvents = async ({ database }: TestApp): Promise<unknown> =>
  (await query(database.connection, 'select count(*)::int as n from event'))[0]?.['n']

/** Archives all events so far, into the archive that a node with this URL would use. */
async function archiveAll({ database }: TestApp, archiveUrl: string) {
  const { connection } = database
  await using keeper = new Database({
    connection,
    role: 'annals_keeper',
    connectionsMax: 3,
    logger,
  })
  await using archive = await openObjectStore(archiveUrl, { s3Endpoint: null, s3Region: null })
  return await archiveLedger(
    { connection, database: keeper, archive, clock: systemClock, logger },
    { beforeMs: Date.now() + 1_000, thresholds: { eventsMin: 1, overdueMs: 0 } },
    new AbortController().signal,
  )
}

test('without an archive URL, an external database keeps all events, and startup logs it once', async () => {
  const off = lines.filter(({ event }) => event === 'archive.off')
  assert.equal(off.length, 1)
  assert.match(String(off[0]?.['reason']), /ANNALS_ARCHIVE_URL is not set: nothing is archived/)

  const { workspaceKey } = await bare.createCompany()
  await storeEvents(bare, workspaceKey, [{ category: 'c', action: 'kept' }])
  const before = await countEvents(bare)
  await assert.rejects(
    archiveCommand(parseConfig(envOf(bare)), { before: new Date().toISOString() }),
    (error) =>
      error instanceof OperatorError &&
      /no archive is configured\. Set ANNALS_ARCHIVE_URL/.test(error.message),
  )
  assert.equal(await countEvents(bare), before)
})

test('an archived export returns events past their hot time that are still in the table', async () => {
  const { workspaceKey: key } = await bare.createCompany()
  await storeEvents(bare, key, [
    { category: 'c', action: 'old 1' },
    { category: 'c', action: 'old 2' },
  ])
  advance(400 * DAY_MS)
  await storeEvents(bare, key, [{ category: 'c', action: 'new' }])

  const filters = { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
  const exported = async (source: string) => {
    const id = await makeExport(bare, key, { source, filters })
    const { status, text } = await download(bare, key, id)
    assert.equal(status, 200, text)
    return text.split('\n').flatMap((row) => (row === '' ? [] : [JSON.parse(row).action]))
  }
  assert.deepEqual(await exported('ARCHIVED'), ['old 1', 'old 2'])
  assert.deepEqual(await exported('HOT'), ['new'])
  assert.deepEqual(await exported('HOT_AND_ARCHIVED'), ['old 1', 'old 2', 'new'])
  const { json } = await bare.call('GET', '/v1/events', { key })
  assert.deepEqual(
    json.data.map(({ action }: { action: string }) => action),
    ['new'],
  )
})

test('a node without an archive names the segment it cannot read, and reports no broken chain', async () => {
  const { workspaceKey: key, workspace } = await annals.createCompany()
  await storeEvents(annals, key, [{ category: 'c', action: 'archived' }])
  assert.equal((await archiveAll(annals, annals.archiveUrl)).events, 1)
  const objectKey = await newestKey(annals)

  const verify = await runCommandInHost(['verify'], envOf(annals))
  assert.equal(verify.code, 1)
  assert.match(verify.stdout, /FAILED: 1 of \d+ chains could not be verified\n$/)
  assert(!verify.stdout.includes('BROKEN'), verify.stdout)
  const unreadable = `UNREADABLE workspace ${workspace.id} at seq 1: can't read the archived segment ${objectKey}`
  assert(verify.stdout.includes(unreadable), verify.stdout)

  const said: Record<string, unknown>[] = []
  await using node = await startTestApp({
    databaseUrl: annals.database.url,
    hasArchive: false,
    logger: pino({ level: 'warn' }, { write: (line) => void said.push(JSON.parse(line)) }),
  })
  const unreachable = said.find(({ event }) => event === 'archive.unreachable')
  assert.equal(unreachable?.['objectKey'], objectKey)
  const filters = { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
  const id = await makeExport(node, key, { source: 'ARCHIVED', filters })
  const refused = await node.call('GET', `/v1/exports/${id}/download`, { key })
  assert.deepEqual([refused.status, refused.json.code], [503, 'unavailable'])
  const { status, lastAttempt } = await readJob(node, key, id)
  assert.deepEqual([status, lastAttempt.code], ['PENDING', 'storage_unavailable'])
  const expected = `No archive is configured, so the archive file ${objectKey} can't be read. `
  assert(lastAttempt.message.startsWith(expected), lastAttempt.message)
  // The same job works on a node that has the archive.
  assert.equal((await download(annals, key, id)).status, 200)
})

test('a node with a different archive names the segment it lacks, and archives nothing', async () => {
  // The audit entries of earlier tests.
  await archiveAll(annals, annals.archiveUrl)
  const { workspaceKey } = await annals.createCompany()
  await storeEvents(annals, workspaceKey, [{ category: 'c', action: 'archived' }])
  await archiveAll(annals, annals.archiveUrl)
  const objectKey = await newestKey(annals)
  // In a workspace without archived events.
  const { workspaceKey: newKey } = await annals.createCompany()
  await storeEvents(annals, newKey, [{ category: 'c', action: 'hot' }])
  const before = await countEvents(annals)

  await using empty = await mkdtempDisposable(join(tmpdir(), 'annals-archive-'))
  const elsewhere = pathToFileURL(empty.path).href
  await assert.rejects(archiveAll(annals, elsewhere), (error) => {
    assert(error instanceof Error)
    return (
      error.message.includes(objectKey) &&
      /lists the segment .* doesn't have it\. Set ANNALS_ARCHIVE_URL/.test(error.message)
    )
  })
  const config = parseConfig(envOf(annals, { ANNALS_ARCHIVE_URL: elsewhere }))
  await assert.rejects(
    archiveCommand(config, { before: new Date(Date.now() + 1_000).toISOString() }),
    (error) => error instanceof OperatorError && error.message.includes(objectKey),
  )
  assert.equal(await countEvents(annals), before)
  assert.equal((await archiveAll(annals, annals.archiveUrl)).events, 1)
})

const UNMOUNTED: [string, (folder: string) => Promise<unknown>][] = [
  ['is missing', async () => {}],
  ['is an empty mount point', (folder) => mkdir(folder)],
]
for (const [title, leave] of UNMOUNTED) {
  test(`an archive folder that ${title} is unavailable, and no event counts as lost`, async () => {
    const { workspaceKey: key, workspace } = await annals.createCompany()
    await storeEvents(annals, key, [{ category: 'c', action: 'archived' }])
    await archiveAll(annals, annals.archiveUrl)
    const filters = { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
    const id = await makeExport(annals, key, { source: 'ARCHIVED', filters })
    const folder = new URL(annals.archiveUrl).pathname
    await rename(folder, `${folder}.disk`)
    await leave(folder)
    const before = await readdir(folder).catch(() => null)

    const env = envOf(annals, { ANNALS_ARCHIVE_URL: annals.archiveUrl })
    const verify = await runCommandInHost(['verify'], env)
    assert.equal(verify.code, 1)
    assert(!verify.stdout.includes('BROKEN'), verify.stdout)
    const line = verify.stdout.split('\n').find((text) => text.includes(workspace.id))
    assert(line?.startsWith('UNREADABLE') && line.includes(folder), verify.stdout)

    const said: Record<string, unknown>[] = []
    await using node = await startTestApp({
      databaseUrl: annals.database.url,
      env: { ANNALS_ARCHIVE_URL: annals.archiveUrl },
      logger: pino({ level: 'error' }, { write: (line) => void said.push(JSON.parse(line)) }),
    })
    await eventually(async () => assert.equal(said[0]?.['event'], 'archive.unreachable'))
    for (const one of [annals, node]) {
      const refused = await one.call('GET', `/v1/exports/${id}/download`, { key })
      assert.deepEqual([refused.status, refused.json.code], [503, 'unavailable'])
    }
    assert.equal((await readJob(node, key, id)).status, 'PENDING')
    assert.deepEqual(await readdir(folder).catch(() => null), before, 'nothing was created')

    await rm(folder, { recursive: true, force: true })
    await rename(`${folder}.disk`, folder)
    assert.equal((await download(node, key, id)).status, 200)
  })
}
