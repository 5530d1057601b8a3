import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { archiveLedger, type ArchiveReport } from '../../../src/outlet/archive/archive-ledger.ts'
import { ReadBack } from '../../../src/outlet/archive/read-back.ts'
import { systemClock as clock } from '../../../src/platform/time/clock.ts'
import { createLogger } from '../../../src/platform/logger.ts'
import { Database } from '../../../src/platform/pg/database.ts'
import { query } from '../database/engine.ts'
import { TIMEOUT_FACTOR } from '../timing/timeout-factor.ts'
import type { TestApp } from '../app/start-app.ts'

const logger = createLogger('silent')

/** Connections with the archiver's role. */
export function openKeeper({ database: { connection } }: TestApp): Database {
  const timeoutFactor = TIMEOUT_FACTOR
  return new Database({
    connection,
    role: 'annals_keeper',
    connectionsMax: 2,
    logger,
    timeoutFactor,
  })
}

/** Archives all events received so far, of every workspace, in this process. */
export async function archiveAll(
  annals: TestApp,
  archive = annals.app.archive,
): Promise<ArchiveReport> {
  await using keeper = openKeeper(annals)
  const { connection } = annals.database
  await using stack = new AsyncDisposableStack()
  const readBack = stack.use(annals.readBacks.pop() ?? new ReadBack())
  const request = { beforeMs: Date.now() + 1_000, thresholds: { eventsMin: 1, overdueMs: 0 } }
  const deps = { connection, database: keeper, archive, readBack, clock, logger }
  const report = await archiveLedger(deps, request, new AbortController().signal)
  // A failed run can leave its thread busy.
  stack.move()
  annals.readBacks.push(readBack)
  return report
}

/** The keys of the files in the storage, in order: those of a workspace, or all. */
export function listFiles({ archiveUrl }: TestApp, workspaceId = ''): string[] {
  const root = new URL(archiveUrl).pathname
  const folder = join(root, workspaceId)
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => relative(root, join(folder, name)))
    .filter((name) => /\.parquet(\.draft)?$/.test(name))
    .toSorted()
}

/** The storage contains exactly the files in the catalog, and no unfinished ones. */
export async function assertNoStrays(annals: TestApp): Promise<void> {
  assert.deepEqual(await readKeys(annals, 'segment_draft'), [])
  await assertEveryFileKnown(annals)
}

/**
 * Like `assertNoStrays`, after a kill, which can leave a complete file that is not in the catalog yet. It is kept
 * and reported, because another database may refer to it.
 */
export async function assertEveryFileKnown(annals: TestApp): Promise<void> {
  const known = [
    ...(await readKeys(annals, 'segment')),
    ...(await readKeys(annals, 'segment_draft')),
  ]
  assert.deepEqual(listFiles(annals), known.toSorted())
}

async function readKeys(
  { database }: TestApp,
  table: 'segment' | 'segment_draft',
): Promise<string[]> {
  const rows = await query(database.connection, `select object_key from ${table}`)
  return rows.map((row) => String(row['object_key']))
}
