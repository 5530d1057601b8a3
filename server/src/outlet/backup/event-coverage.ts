import { type Static, Type } from 'typebox'
import { OperatorError } from '../../errors.ts'
import {
  type BackupFile,
  BackupFileSchema,
  ExactCount,
  Sha256,
  writeSmallBackupFile,
} from './backup-file.ts'
import { listInBackup, readInBackup } from './backup-folder.ts'
import { EVENTS_PART, isBackupName } from './backup-name.ts'
import { createChecker, readHashedJson, writeHashedJson } from './hashed-json.ts'
import { LIST_BYTES_MAX } from './manifest.ts'

const RunSchema = Type.Object({
  workspaceId: Type.String({ pattern: '^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
  first: ExactCount,
  last: ExactCount,
  lastHash: Sha256,
})
const EventFileSchema = Type.Object({
  file: BackupFileSchema,
  rows: ExactCount,
  runs: Type.Array(RunSchema),
})
const checkEventFile = createChecker(EventFileSchema)

/** A range of a chain in a file, and the hash of its last event. */
export type EventRun = Static<typeof RunSchema>

/** A file of events, and which ones it contains. */
export type EventFile = Static<typeof EventFileSchema>

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
  const files: EventFile[] = []
  for (const name of (await listInBackup(folder, EVENTS_PART)).toSorted()) {
    const path = `${EVENTS_PART}/${name}`
    if (!isBackupName(path) || !name.endsWith('.json')) continue
    const bytes = await readInBackup(folder, path, { bytesMax: LIST_BYTES_MAX })
    const text = typeof bytes === 'string' ? '' : bytes.toString()
    const checked = checkEventFile(readHashedJson(text))
    if (!('value' in checked) || indexPathOf(checked.value.file.path) !== path) {
      throw new OperatorError(`The file ${path} in ${folder} is damaged. Back up to a new folder.`)
    }
    files.push(checked.value)
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
