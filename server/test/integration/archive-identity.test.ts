import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cp, mkdtempDisposable, readdir, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { archiveLedger } from '../../src/outlet/archive/archive-ledger.ts'
import { systemClock } from '../../src/platform/time/clock.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import { Database } from '../../src/platform/pg/database.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { query } from '../harness/database/engine.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const MARKER = /^annals-archive-[0-9a-f]{32}$/
const REFUSAL =
  /This node's archive doesn't have the marker file annals-archive-[0-9a-f]{32}, which/
const logger = createLogger('silent')
const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
// Without its own archive: only the runs below archive.
const annals = stack.use(await startTestApp({ hasArchive: false }))
const { connection } = annals.database
const company = await annals.createCompany({ workspaces: ['1', '2', '3', '4', '5', '6'] })
const root = stack.use(await mkdtempDisposable(join(tmpdir(), 'annals-archives-')))
const folderOf = (name: string): string => join(root.path, name)

/** One more event in each workspace. */
async function storeMore(): Promise<void> {
  for (const { workspaceKey } of company.workspaces) {
    await storeEvents(annals, workspaceKey, [{ category: 'c', action: 'a' }])
  }
}

/** Archives all events into a folder, as a node with this ANNALS_ARCHIVE_URL would. */
async function archiveInto(name: string) {
  await using database = new Database({
    connection,
    role: 'annals_keeper',
    connectionsMax: 3,
    logger,
  })
  const url = pathToFileURL(folderOf(name)).href
  await using archive = await openObjectStore(url, { s3Endpoint: null, s3Region: null })
  return await archiveLedger(
    { connection, database, archive, clock: systemClock, logger },
    { beforeMs: Date.now() + 1_000, thresholds: { eventsMin: 1, overdueMs: 0 } },
    new AbortController().signal,
  )
}

async function filesIn(name: string, pattern: RegExp): Promise<string[]> {
  const names = await readdir(folderOf(name), { recursive: true })
  return names.filter((file) => pattern.test(file))
}

async function markerIn(name: string): Promise<string> {
  const [marker, ...others] = await filesIn(name, MARKER)
  assert(marker !== undefined && others.length === 0)
  return marker
}

const countEvents = async () =>
  (await query(connection, 'select count(*)::int as n from event'))[0]?.['n']
const startOver = () => query(connection, 'delete from archive_identity')

test('archivers with different folders that start at once use one of them, and the other is rejected', async () => {
  await storeMore()
  const outcomes = await Promise.allSettled([archiveInto('a'), archiveInto('b')])
  const refusals = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  assert.match(String(refusals[0]), REFUSAL)
  assert.equal(refusals.length, 1)
  const [used, unused] = outcomes[0]?.status === 'rejected' ? ['b', 'a'] : ['a', 'b']
  // The next run archives the events of the refused run.
  await archiveInto(used)
  assert.equal(await countEvents(), 0)
  assert.equal((await filesIn(used, /\.parquet$/)).length, company.workspaces.length)
  assert.deepEqual(await filesIn(unused, /\.parquet$|^annals-archive/), [])
  await rename(folderOf(used), folderOf('archive'))
})

test('archivers that share a folder and start at once both archive', async () => {
  await startOver()
  await rm(join(folderOf('archive'), await markerIn('archive')))
  await storeMore()
  const reports = await Promise.all([archiveInto('archive'), archiveInto('archive')])
  assert.deepEqual(
    reports.map(({ failed }) => failed),
    [0, 0],
  )
  await archiveInto('archive')
  assert.equal(await countEvents(), 0)
  await markerIn('archive')
})

test('archiving stops when the marker is lost, and continues when the marker is restored', async () => {
  const marker = await markerIn('archive')
  await storeMore()
  const aside = join(root.path, 'aside')
  await rename(join(folderOf('archive'), marker), aside)
  await assert.rejects(archiveInto('archive'), REFUSAL)
  assert.equal(await countEvents(), company.workspaces.length)
  await rename(aside, join(folderOf('archive'), marker))
  assert.equal((await archiveInto('archive')).events, company.workspaces.length)
})

test('accepts a restored storage with its marker, and rejects one that lacks newer segments', async () => {
  await cp(folderOf('archive'), folderOf('backup'), { recursive: true })
  await storeMore()
  assert.equal((await archiveInto('backup')).events, company.workspaces.length)
  await storeMore()
  await assert.rejects(archiveInto('archive'), /lists the segment .* but this node's archive/)
  assert.equal((await archiveInto('backup')).events, company.workspaces.length)
})

test('`annals archive` prints why it rejects a single workspace', async () => {
  await storeMore()
  const [first] = await query(
    connection,
    `select object_key from segment s where last_seq = (select max(last_seq) from segment
      where workspace_id = s.workspace_id) order by created_at, last_seq limit 1`,
  )
  const objectKey = String(first?.['object_key'])
  await rm(join(folderOf('backup'), objectKey))
  const env = {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_ARCHIVE_URL: pathToFileURL(folderOf('backup')).href,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  }
  const before = new Date(Date.now() + 1_000).toISOString()
  const { code, stdout } = await runCommandInHost(['archive', '--before', before], env)
  assert.equal(code, 1)
  assert.match(stdout, /archived 5 events of 5 workspaces\nFAILED: 1 workspaces/)
  assert(stdout.includes(`annals: The catalog lists the segment ${objectKey}`), stdout)
})
