import { BackupFileWriter } from './backup-file.ts'
import { EVENTS_PART } from './backup-name.ts'
import {
  type BackedUpHead,
  type CoveredEnd,
  type EventFile,
  type EventRun,
  missingRuns,
  writeEventIndex,
} from './event-coverage.ts'
import type { LedgerSnapshot } from './ledger-snapshot.ts'
import { copyRunText, readRunRow } from './snapshot-store.ts'

/** Events per statement, whose locks last about a second. */
const RUN_EVENTS_MAX = 10_000
/** Uncompressed. After an interruption, at most this much is copied again. */
const FILE_BYTES = 16 * 1_024 * 1_024

/**
 * An event of the snapshot is gone. The archiver drops partitions that became empty, which removes their rows from
 * older snapshots too. A new snapshot knows that these events are archived.
 */
export class EventsMovedError extends Error {
  override name = 'EventsMovedError'
}

type EventBackup = {
  snapshot: LedgerSnapshot
  folder: string
  /** The prefix of the names of new files. */
  name: string
  columns: readonly string[]
  heads: readonly BackedUpHead[]
  covered: ReadonlyMap<string, CoveredEnd>
  onEvents: (events: number) => void
}

/** Copies the events that the backup lacks. Each file that is complete stays, even if the rest fails. */
export async function backUpEvents(backup: EventBackup): Promise<EventFile[]> {
  const { folder, name, heads, covered } = backup
  const files: EventFile[] = []
  let runs: EventRun[] = []
  let writer: BackupFileWriter | null = null
  let bytes = 0
  const finish = async (): Promise<void> => {
    if (writer === null) return
    const file = await writer.finish()
    const rows = runs.reduce((sum, { first, last }) => sum + last - first + 1, 0)
    const entry = { file, rows, runs }
    await writeEventIndex(folder, entry)
    files.push(entry)
    writer = null
    runs = []
    bytes = 0
  }
  try {
    for (const run of missingRuns(heads, covered, RUN_EVENTS_MAX)) {
      const number = String(files.length + 1).padStart(6, '0')
      writer ??= await BackupFileWriter.open(folder, `${EVENTS_PART}/${name}-${number}.zst`)
      const copied = await copyRun(backup, run, writer)
      runs.push(copied.run)
      bytes += copied.bytes
      if (bytes >= FILE_BYTES) await finish()
    }
    await finish()
  } finally {
    await writer?.[Symbol.asyncDispose]()
  }
  return files
}

/** Copies a run, and checks that it has every event. */
async function copyRun(
  { snapshot, columns, onEvents }: EventBackup,
  run: Omit<EventRun, 'lastHash'>,
  writer: BackupFileWriter,
): Promise<{ run: EventRun; bytes: number }> {
  const { workspaceId, first, last } = run
  const gone = (seq: number) => new EventsMovedError(`event ${seq} of ${workspaceId} is missing`)
  let next = first
  let lastHash = ''
  let bytes = 0
  const onRow = (row: Buffer): void => {
    const { seq, hash } = readRunRow(row)
    if (seq !== next) throw gone(next)
    next += 1
    lastHash = hash
  }
  for await (const block of snapshot.copy(copyRunText(columns, run), onRow)) {
    await writer.write(block)
    bytes += block.length
  }
  if (next <= last) throw gone(next)
  onEvents(last - first + 1)
  return { run: { ...run, lastHash }, bytes }
}
