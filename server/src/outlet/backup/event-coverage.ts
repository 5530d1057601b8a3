import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { OperatorError } from '../../errors.ts'
import { type BackupFile, isMissing, writeSmallBackupFile } from './backup-file.ts'
import { isHashedJson, writeHashedJson } from './hashed-json.ts'
import { parseJson } from '../../platform/json/parse-json.ts'

export const EVENTS_PART = 'events'

/** A range of a chain in a file, and the hash of its last event. */
export type EventRun = { workspaceId: string; first: number; last: number; lastHash: string }

/** A file of events, and which ones it contains. */
export type EventFile = { file: BackupFile; rows: number; runs: EventRun[] }

/** A chain at the time of the snapshot. Events up to `archivedSeq` are in the archive. */
export type BackedUpHead = { workspaceId: string; seq: number; hash: string; archivedSeq: number }

/** Where a chain's events in the backup end. */
export type CoveredEnd = Pick<EventRun, 'last' | 'lastHash'>

/**
 * What a file contains is in a second file next to it, which is written when the first one is complete. So after an
 * interruption, the next backup knows which files it can keep.
 */
export async function writeEventIndex(folder: string, entry: EventFile): Promise<BackupFile> {
  return await writeSmallBackupFile(folder, indexPathOf(entry.file.path), writeHashedJson(entry))
}

export function indexPathOf(path: string): string {
  return path.replace(/\.zst$/, '.json')
}

/** All complete event files in the folder, in the order in which they were written. */
export async function listEventFiles(folder: string): Promise<EventFile[]> {
  const names: string[] = await readdir(join(folder, EVENTS_PART)).catch((error: unknown) => {
    if (isMissing(error)) return []
    throw error
  })
  const files: EventFile[] = []
  for (const name of names.toSorted()) {
    if (!name.endsWith('.json')) continue
    const text = await readFile(join(folder, EVENTS_PART, name), 'utf8')
    if (!isHashedJson(text)) {
      throw new OperatorError(
        `The file ${EVENTS_PART}/${name} in ${folder} is damaged. Back up to a new folder.`,
      )
    }
    const entry: EventFile = parseJson(text)
    files.push(entry)
  }
  return files
}

/** Where the events of each chain end. Each run continues the one before it, or the archive. */
export function coverageOf(files: readonly EventFile[]): Map<string, CoveredEnd> {
  const covered = new Map<string, CoveredEnd>()
  for (const { workspaceId, last, lastHash } of files.flatMap(({ runs }) => runs)) {
    if (last > (covered.get(workspaceId)?.last ?? 0)) covered.set(workspaceId, { last, lastHash })
  }
  return covered
}

/** The files that still have events that aren't archived. */
export function neededFiles(
  files: readonly EventFile[],
  heads: readonly BackedUpHead[],
): EventFile[] {
  const archived = new Map(heads.map(({ workspaceId, archivedSeq }) => [workspaceId, archivedSeq]))
  return files.filter(({ runs }) =>
    runs.some(({ workspaceId, last }) => last > (archived.get(workspaceId) ?? 0)),
  )
}

/** The ranges that the backup lacks, each with at most `eventsMax` events. */
export function* missingRuns(
  heads: readonly BackedUpHead[],
  covered: ReadonlyMap<string, CoveredEnd>,
  eventsMax: number,
): Generator<Pick<EventRun, 'workspaceId' | 'first' | 'last'>, void, void> {
  for (const { workspaceId, seq, archivedSeq } of heads) {
    const start = Math.max(covered.get(workspaceId)?.last ?? 0, archivedSeq) + 1
    for (let first = start; first <= seq; first += eventsMax) {
      yield { workspaceId, first, last: Math.min(first + eventsMax - 1, seq) }
    }
  }
}
