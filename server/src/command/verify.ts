import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'
import { requestChainRestores } from '../ledger/segment/restore.ts'
import { readArchiveId } from '../outlet/archive/archive-identity-store.ts'
import { TreeCheck } from '../outlet/proof/check-tree.ts'
import { inspectKeyList, type KeySource } from '../outlet/proof/key-list/key-list-copies.ts'
import { findLost, signedText } from '../outlet/proof/lost-workspace.ts'
import { SegmentUnreadableError } from '../outlet/verify/verify-archive.ts'
import { verifyChain } from '../outlet/verify/verify-ledger.ts'
import { failureOf, outcomeOf, treeOutcomeOf } from '../outlet/verify/verify-outcome.ts'
import { archiveUrlOf } from '../archive-url-of.ts'
import { openArchive } from '../data-source.ts'
import type { WorkspaceId } from '../platform/id.ts'
import {
  LISTED_KEYS_MAX,
  type ObjectStore,
  StorageError,
} from '../platform/object-store/object-store.ts'
import { type Database, isOutage } from '../platform/pg/database.ts'
import { listAllWorkspaces } from '../tenancy/workspace/workspace-store.ts'
import { openDatabase } from './open-database.ts'
import { recordVerdicts, type WorkspaceVerdict } from './record-verdicts.ts'
import { printLines } from './output/print.ts'

/** Gets one line, and escapes what can't be printed. */
type Print = (line: string) => void

type VerifyDeps = Pick<Database, 'pool' | 'db'> & {
  archive: ObjectStore
  hasArchive: boolean
  keySource: KeySource
}

/** The verdict on one workspace, and the line that the operator sees, or null if there is no fault. */
type Result = Pick<WorkspaceVerdict, 'outcome'> & {
  events: number
  fault: 'broken' | 'unchecked' | 'mismatched' | null
  line: string | null
  isSigned: boolean
}

/** What the archive says about workspaces that the database doesn't have. */
type LostCounts = { lost: number; accepted: number; isReadable: boolean }

/**
 * `annals verify`: exits with code 1 if a chain is broken, and names its first bad event, or if its tiles or its
 * checkpoint don't match it. Also exits with code 1 if something that a chain needs can't be read, if there are
 * no chains, if the database doesn't have a workspace that was signed, or if the list of signing keys was changed.
 * Each company gets its verdict in its audit log. Returns whether the ledger is intact.
 */
export async function verify(config: Config, print: Print = printLines): Promise<boolean> {
  await using database = await openDatabase(config, { mayCreate: false })
  const { pool, db } = database
  await using archive = openArchive(config, { readArchiveId: () => readArchiveId(db) })
  const keySource: KeySource = {
    get secretKey() {
      return database.secretKey
    },
    configured: config.signingKey ?? config.signingKeyFile,
    previous: config.signingKeyPrevious,
  }
  const deps = { pool, db, archive, hasArchive: archiveUrlOf(config) !== null, keySource }
  const keyFault = await verifyKeyList(deps, print)
  const lost = await verifyNoneLost(deps, print)
  const workspaces = await listAllWorkspaces(db)
  if (workspaces.length === 0) {
    throw new OperatorError(
      'Nothing was verified, because the database has no workspaces. Check that it is the right database.',
    )
  }
  const verdicts: WorkspaceVerdict[] = []
  const results: Omit<Result, 'outcome'>[] = []
  for (const { id: workspaceId, companyId } of workspaces) {
    const { outcome, ...result } = await verifyWorkspace(deps, workspaceId)
    verdicts.push({ companyId, workspaceId, outcome })
    results.push(result)
    if (result.line !== null) print(result.line)
  }
  const isIntact = printResults(results, { lost, keyFault }, print)
  await recordVerdicts(db, verdicts)
  return isIntact
}

/** Returns what is wrong with the list of signing keys, for the last line. Changes nothing: a running node repairs it. */
async function verifyKeyList(
  { hasArchive, ...deps }: VerifyDeps,
  print: Print,
): Promise<string | null> {
  if (!hasArchive) return null
  try {
    const { problem } = await inspectKeyList(deps)
    if (problem === null) return null
    print(`BROKEN list of signing keys: ${problem}`)
    return 'the list of signing keys was changed'
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    print(`UNREADABLE list of signing keys: ${error.message}`)
    return 'the list of signing keys could not be verified'
  }
}

/** Finds what no chain shows: a workspace that is gone with all of its rows. */
async function verifyNoneLost(
  { db, archive, hasArchive }: VerifyDeps,
  print: Print,
): Promise<LostCounts> {
  const counts = { lost: 0, accepted: 0, isReadable: true }
  let cursor: string | null = null
  if (!hasArchive) return counts
  try {
    do {
      const page = await findLost({ db, archive }, { cursor, limit: LISTED_KEYS_MAX })
      if ('denied' in page) {
        print(
          `note: the signed workspaces can't be listed, so lost ones aren't detected: ${page.denied}`,
        )
        return counts
      }
      const lost = page.lost.filter(({ isAccepted }) => !isAccepted)
      counts.lost += lost.length
      counts.accepted += page.lost.length - lost.length
      for (const workspace of lost) {
        print(
          `LOST workspace ${workspace.workspaceId}: ${signedText(workspace)}, but the workspace is missing from the database`,
        )
      }
      cursor = page.cursor
    } while (cursor !== null)
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    print(`UNREADABLE list of signed workspaces: ${error.message}`)
    counts.isReadable = false
  }
  return counts
}

async function verifyWorkspace(
  { pool, db, archive, hasArchive, keySource }: VerifyDeps,
  workspaceId: WorkspaceId,
): Promise<Result> {
  try {
    const tree = await TreeCheck.open({
      db,
      archive: hasArchive ? archive : null,
      workspaceId,
      listKeys: async () => (await inspectKeyList({ db, archive, keySource })).list.keys,
    })
    const verdict = await verifyChain({ pool, db }, archive, workspaceId, { hashes: tree })
    const { isSigned } = tree
    const { events } = verdict
    if (!verdict.ok) {
      const which = verdict.id === null ? '' : ` (event ${verdict.id})`
      const line = `BROKEN workspace ${workspaceId} at seq ${verdict.seq}${which}: ${verdict.problem}`
      return { outcome: outcomeOf(verdict), events, fault: 'broken', line, isSigned }
    }
    const problem = await tree.finish()
    if (problem === null) {
      return { outcome: outcomeOf(verdict), events, fault: null, line: null, isSigned }
    }
    const outcome = treeOutcomeOf(events, problem)
    const line = `BROKEN workspace ${workspaceId}, its signed tree: ${problem}`
    return { outcome, events, fault: 'mismatched', line, isSigned }
  } catch (error) {
    if (isOutage(error)) throw error
    const result = {
      outcome: failureOf(error),
      events: 0,
      fault: 'unchecked',
      isSigned: false,
    } as const
    if (error instanceof SegmentUnreadableError && error.isCold) {
      await requestChainRestores(db, archive, error.segment)
      const line = `RESTORING workspace ${workspaceId} at seq ${error.seq}: the archived files from there on are in a cold storage class. Their restore was requested; run the command again in a few hours.`
      return { ...result, line }
    }
    const where = error instanceof SegmentUnreadableError ? ` at seq ${error.seq}` : ''
    return { ...result, line: `UNREADABLE workspace ${workspaceId}${where}: ${reasonOf(error)}` }
  }
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  if (error instanceof SegmentUnreadableError || error instanceof StorageError) return text
  // A value that Annals never writes. It must not hide what is wrong with the other workspaces.
  return `something in its rows can't be read: ${text}`
}

function printResults(
  results: readonly Omit<Result, 'outcome'>[],
  { lost, keyFault }: { lost: LostCounts; keyFault: string | null },
  print: Print,
): boolean {
  const total = results.length
  const count = (fault: Result['fault']) =>
    results.filter((result) => result.fault === fault).length
  const faults = [
    { count: count('broken'), text: 'chains are broken' },
    { count: count('mismatched'), text: 'signed trees differ from their chains' },
    { count: count('unchecked'), text: 'chains could not be verified' },
  ].filter((fault) => fault.count > 0)
  const texts = faults.map((fault) => `${fault.count} of ${total} ${fault.text}`)
  if (lost.lost > 0) texts.push(`signed workspaces that are lost: ${lost.lost}`)
  if (!lost.isReadable) texts.push('the signed workspaces could not be listed')
  if (keyFault !== null) texts.push(keyFault)
  if (lost.accepted > 0) {
    print(`note: lost workspaces that were accepted: ${lost.accepted}`)
  }
  if (texts.length > 0) {
    print(`FAILED: ${texts.join(', ')}`)
    process.exitCode = 1
    return false
  }
  const events = results.reduce((sum, result) => sum + result.events, 0)
  print(`ok: ${events} events in ${total} workspaces, every chain is intact`)
  const signed = results.filter((result) => result.isSigned).length
  if (signed === 0) return true
  print(`ok: the tiles and checkpoints of ${signed} signed workspaces match their chains`)
  return true
}
