import { availableParallelism } from 'node:os'
import { archiveUrlOf } from '../../archive-url-of.ts'
import type { Config } from '../../config.ts'
import { openArchive, placeOfArchive } from '../../open-archive.ts'
import { OperatorError } from '../../errors.ts'
import { readArchiveId } from '../../outlet/archive/archive-identity-store.ts'
import { inspectKeyList, type KeySource } from '../../outlet/proof/key-list/key-list-copies.ts'
import { findLost, signedText } from '../../outlet/proof/lost-workspace.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { LISTED_KEYS_MAX, StorageError } from '../../platform/object-store/object-store.ts'
import { serverListOf } from '../../platform/pg/servers.ts'
import { listAllWorkspaces } from '../../tenancy/workspace/workspace-store.ts'
import { openDatabase } from '../open-database.ts'
import { printLines } from '../output/print.ts'
import { ProgressLine } from '../output/progress-line.ts'
import { KeptCheckpoints } from './kept-checkpoints.ts'
import { recordVerdicts } from './record-verdicts.ts'
import { verifyAll } from './verify-all.ts'
import { type LostCounts, type Print, VerifyReport } from './verify-report.ts'
import type { VerifyDeps } from './verify-workspace.ts'

export type VerifyCommandOptions = {
  /** How many threads verify at most. */
  parallel?: number
  /** The file with the checkpoints that were verified last. */
  since?: string
  json?: boolean
}

/** Each thread has a database connection, so a large machine doesn't use more than these unless it is told to. */
const THREADS_DEFAULT_MAX = 8

/**
 * `annals verify`: exits with code 1 if a chain is broken, and names its first bad event, or if its tiles or its
 * checkpoint don't match it. Also exits with code 1 if something that a chain needs can't be read, if there are
 * no chains, if the database doesn't have a workspace that was signed, or if the list of signing keys was changed.
 * Each company gets its verdict in its audit log. Returns whether the ledger is intact.
 */
export async function verify(
  config: Config,
  options: VerifyCommandOptions = {},
  print: Print = printLines,
): Promise<boolean> {
  const { since, json = false, parallel = defaultThreads() } = options
  const hasArchive = archiveUrlOf(config) !== null
  const kept = since === undefined ? null : await openKept(since, hasArchive)
  await using database = await openDatabase(config, { mayCreate: false })
  const { pool, db, connection } = database
  await using archive = openArchive(config, { readArchiveId: () => readArchiveId(db) })
  const keySource: KeySource = {
    get secretKey() {
      return database.secretKey
    },
    configured: config.signingKey ?? config.signingKeyFile,
    previous: config.signingKeyPrevious,
  }
  const deps: VerifyDeps = { pool, db, archive, hasArchive, keySource }
  using progress = new ProgressLine()
  const report = new VerifyReport({ print, isJson: json, hideProgress: () => progress.hide() })
  const keyFault = await verifyKeyList(deps, report)
  const { accepted, ...lost } = await verifyNoneLost(deps, report)
  const workspaces = await listAllWorkspaces(db)
  if (workspaces.length === 0) {
    throw new OperatorError(
      'Nothing was verified, because the database has no workspaces. Check that it is the right database.',
    )
  }
  lost.lost += report.addLost(kept?.findLost(workspaces, accepted) ?? [])
  const { servers, needsPrimary } = serverListOf(connection)
  const results = await verifyAll(deps, {
    workspaces,
    kept,
    threadsMax: parallel,
    threadData: { address: { servers, needsPrimary }, archive: placeOfArchive(config) },
    onResult: (result) => report.addResult(result, kept),
    onProgress: (events, total) => void (json || progress.show('Events', events, total)),
  })
  const counts = { accepted: accepted.size, ...lost }
  const isIntact = report.end(results, { lost: counts, keyFault })
  if (!isIntact) process.exitCode = 1
  await kept?.save(results, new Date())
  await recordVerdicts(db, { workspaces, results })
  return isIntact
}

function defaultThreads(): number {
  return Math.min(availableParallelism(), THREADS_DEFAULT_MAX)
}

async function openKept(path: string, hasArchive: boolean): Promise<KeptCheckpoints> {
  if (hasArchive) return await KeptCheckpoints.open(path)
  throw new OperatorError(
    '--since needs signed checkpoints, but nothing is signed without an archive. Set ANNALS_ARCHIVE_URL, or run the command without --since.',
  )
}

/** Returns what is wrong with the list of signing keys, for the last line. Changes nothing: a running node repairs it. */
async function verifyKeyList(
  { hasArchive, ...deps }: VerifyDeps,
  report: VerifyReport,
): Promise<string | null> {
  if (!hasArchive) return null
  const finding = { workspaceId: null, seq: null, eventId: null }
  const text = (reason: string) => `list of signing keys: ${reason}`
  try {
    const { problem } = await inspectKeyList(deps)
    if (problem === null) return null
    report.addFinding({ ...finding, kind: 'BROKEN', text: text(problem) })
    return 'the list of signing keys was changed'
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    report.addFinding({ ...finding, kind: 'UNREADABLE', text: text(error.message) })
    return 'the list of signing keys could not be verified'
  }
}

type Lost = Omit<LostCounts, 'accepted'> & { accepted: Set<WorkspaceId> }

/** Finds what no chain shows: a workspace that is gone with all of its rows. */
async function verifyNoneLost(
  { db, archive, hasArchive }: VerifyDeps,
  report: VerifyReport,
): Promise<Lost> {
  const counts: Lost = { lost: 0, accepted: new Set(), isReadable: true }
  const finding = { seq: null, eventId: null }
  let cursor: string | null = null
  if (!hasArchive) return counts
  try {
    do {
      const page = await findLost({ db, archive }, { cursor, limit: LISTED_KEYS_MAX })
      if ('denied' in page) {
        report.addNote(
          `the signed workspaces can't be listed, so lost ones aren't detected: ${page.denied}`,
        )
        return counts
      }
      for (const workspace of page.lost) {
        const { workspaceId, isAccepted } = workspace
        if (isAccepted) {
          counts.accepted.add(workspaceId)
          continue
        }
        counts.lost += 1
        const text = `workspace ${workspaceId}: ${signedText(workspace)}, but the workspace is missing from the database`
        report.addFinding({ ...finding, kind: 'LOST', workspaceId, text })
      }
      cursor = page.cursor
    } while (cursor !== null)
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    const text = `list of signed workspaces: ${error.message}`
    report.addFinding({ ...finding, kind: 'UNREADABLE', workspaceId: null, text })
    counts.isReadable = false
  }
  return counts
}
