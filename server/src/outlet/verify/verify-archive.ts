import { type ChainHead, EMPTY_HEAD, headAfter, type SealedEvent } from '../../ledger/event.ts'
import { type ChainEntry, listChainRun } from '../../ledger/event-store.ts'
import { readChecked } from '../../ledger/segment/cold-reader.ts'
import { footerSha256Of } from '../../ledger/segment/segment-footer.ts'
import {
  readSegment,
  SegmentDamagedError,
  SegmentMissingError,
  verifySegment,
} from '../../ledger/segment/segment-reader.ts'
import {
  findSegmentOutside,
  listSegments,
  type Segment,
} from '../../ledger/segment/segment-store.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import { isObjectKey } from '../../platform/object-store/object-key.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { SERVICE } from '../../platform/scheduling/thread-share.ts'
import { TimeSlice } from '../../platform/scheduling/time-slice.ts'
import { entryProblem, foreignProblem } from './verify-entry.ts'

/** A step is a file of the archive or a page of the table. */
export type VerifySteps = {
  /** Called after each step with the number of events that were checked. */
  onProgress?: (checked: number) => void
  /** Called between steps. Throws to stop. */
  pause?: () => Promise<void>
  /** Gets the hashes of all events in order. */
  hashes?: HashConsumer
  /** Whose events they must be. */
  companyId?: CompanyId | undefined
}

/** Calls `restart` before the first event, and again if the chain is reread. Calls `flush` after each step. */
export type HashConsumer = {
  restart: () => void
  /** The buffer is overwritten after the call. */
  add: (hash: Buffer) => void
  flush: () => Promise<void>
}

/** The last archived event of a chain, or where and why the chain is broken. */
type ArchiveVerdict =
  | { ok: true; head: ChainHead }
  | { ok: false; head: ChainHead; seq: number; id: string | null; problem: string }

const FOREIGN_NAME = 'a file whose name is not one that Annals gives'

/** Someone with write access to the database can put any text into the catalog, such as a false finding. */
function nameOf(objectKey: string): string {
  return isObjectKey(objectKey) ? objectKey : FOREIGN_NAME
}

/** An archived file can't be read right now. This says nothing about the chain. */
export class SegmentUnreadableError extends Error {
  override name = 'SegmentUnreadableError'
  readonly segment: Segment
  /** Whether it must be restored from a cold storage class first. */
  readonly isCold: boolean

  constructor(segment: Segment, cause: StorageError) {
    const { objectKey, firstSeq, lastSeq } = segment
    const where = `${nameOf(objectKey)} (events ${firstSeq} to ${lastSeq})`
    super(`can't read the archived segment ${where}: ${cause.message}`, { cause })
    this.segment = segment
    this.isCold = cause.isCold
  }

  get seq(): number {
    return this.segment.firstSeq
  }
}

const SEGMENTS_PER_READ = 100
const EVENTS_PER_READ = 2_000

/**
 * Checks every file, every hash in it, and that each file continues the one before. Throws a
 * `SegmentUnreadableError` if a file can't be read.
 */
export async function verifyArchive(
  db: Queryable,
  archive: ObjectStore,
  workspaceId: WorkspaceId,
  { onProgress, pause, hashes, companyId }: VerifySteps = {},
): Promise<ArchiveVerdict> {
  let head: ChainHead = EMPTY_HEAD
  const outside = await findSegmentOutside(db, workspaceId)
  if (outside !== null) {
    const problem = `the catalog lists ${nameOf(outside)} at a position that no event can have`
    return { ok: false, head, seq: 1, id: null, problem }
  }
  for (;;) {
    const run = { workspaceId, fromSeq: head.seq + 1, toSeq: Number.MAX_SAFE_INTEGER }
    const segments = await listSegments(db, { ...run, limit: SEGMENTS_PER_READ })
    for (const segment of segments) {
      const problem = await segmentProblem(db, archive, { head, segment, hashes, companyId })
      if (problem !== null) {
        return { ok: false, head, seq: segment.firstSeq, id: null, problem }
      }
      head = { seq: segment.lastSeq, hash: segment.lastHash, lastId: segment.lastId }
      onProgress?.(head.seq)
      await hashes?.flush()
      await pause?.()
    }
    // A shorter list isn't the end: files may have been archived since it was read.
    if (segments.length === 0) return { ok: true, head }
  }
}

/** What is wrong with a file that should continue the chain after `head`. */
export async function segmentProblem(
  db: Queryable,
  archive: ObjectStore,
  {
    head,
    segment,
    hashes,
    companyId,
  }: {
    head: ChainHead
    segment: Segment
    hashes?: HashConsumer | undefined
    companyId?: CompanyId | undefined
  },
): Promise<string | null> {
  if (!isObjectKey(segment.objectKey)) return `the catalog lists ${FOREIGN_NAME}`
  const problem = positionProblem(head, segment)
  if (problem !== null) return problem
  return await orUnreadable(
    segment,
    async () =>
      (await contentProblem(archive, { segment, hashes, companyId })) ??
      (await leftoverProblem(db, archive, { head, segment })),
  )
}

function positionProblem(head: ChainHead, { objectKey, firstSeq, firstPrevHash }: Segment) {
  if (firstSeq !== head.seq + 1) {
    return `the archive continues with event ${firstSeq} (${objectKey}), expected event ${head.seq + 1}`
  }
  if (firstPrevHash !== head.hash) {
    return `${objectKey} continues from the hash ${firstPrevHash}, but the hash of the previous event is ${head.hash}`
  }
  return null
}

/** Adds the name of the file to a storage error. */
export async function orUnreadable<T>(segment: Segment, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw error instanceof StorageError ? new SegmentUnreadableError(segment, error) : error
  }
}

async function contentProblem(
  archive: ObjectStore,
  {
    segment,
    hashes,
    companyId,
  }: { segment: Segment; hashes: HashConsumer | undefined; companyId: CompanyId | undefined },
): Promise<string | null> {
  const { objectKey, firstSeq, lastSeq, lastId, footerSha256 } = segment
  try {
    const bytes = await readChecked(archive, segment)
    const expected = { ...segment, rows: lastSeq - firstSeq + 1 }
    const foreign: string[] = []
    const verdict = await verifySegment(bytes, expected, (events) => {
      const found = foreignProblem(events[0], companyId)
      if (found !== null) foreign.push(found)
      for (const { hash } of events) hashes?.add(Buffer.from(hash, 'hex'))
    })
    if (!verdict.ok) return `${objectKey}: ${verdict.problem}`
    if (foreign[0] !== undefined) return `${objectKey}: ${foreign[0]}`
    if (bytes.length !== segment.bytes) {
      return `${objectKey} has ${bytes.length} bytes, expected ${segment.bytes}`
    }
    if (footerSha256Of(bytes) !== footerSha256) {
      return `${objectKey} has a footer that differs from the catalog`
    }
    for await (const [last] of readSegment(bytes, { fromSeq: lastSeq })) {
      if (last?.id !== lastId) return `${objectKey} ends with event ${last?.id}, expected ${lastId}`
    }
    return null
  } catch (error) {
    return damageOf(error, objectKey)
  }
}

/** The finding that a file is missing or damaged. Rethrows other errors. */
export function damageOf(error: unknown, objectKey = ''): string {
  const isFinding = error instanceof SegmentMissingError || error instanceof SegmentDamagedError
  if (isFinding) return asFinding(error.message, objectKey)
  throw error
}

/** Reads one archived event. Null if no file of the catalog contains it. Throws if the file is missing or damaged. */
export async function readArchivedEvent(
  db: Queryable,
  archive: ObjectStore,
  { workspaceId, seq }: { workspaceId: WorkspaceId; seq: number },
): Promise<SealedEvent | null> {
  const [file] = await listSegments(db, { workspaceId, fromSeq: seq, toSeq: seq, limit: 1 })
  if (!file) return null
  const bytes = await orUnreadable(file, () => readChecked(archive, file))
  for await (const [event] of readSegment(bytes, { fromSeq: seq, toSeq: seq })) return event ?? null
  return null
}

/** Turns a sentence into a clause of another one, which must name the file exactly once. */
function asFinding(sentence: string, objectKey: string): string {
  const clause = `${sentence.charAt(0).toLowerCase()}${sentence.slice(1).replace(/\.$/, '')}`
  return sentence.includes(objectKey) ? clause : `${objectKey}: ${clause}`
}

/** Archived events that are still in the table must equal those in the archive, because lists read the table. */
async function leftoverProblem(
  db: Queryable,
  archive: ObjectStore,
  { head, segment }: { head: ChainHead; segment: Segment },
): Promise<string | null> {
  const { workspaceId, firstSeq, lastSeq } = segment
  const read = async (after: { afterSeq: number; seen?: SealedEvent }): Promise<ChainEntry[]> => {
    const { entries } = await listChainRun(db, { workspaceId, limit: EVENTS_PER_READ, ...after })
    return entries.filter(({ event }) => event.seq <= lastSeq)
  }
  let run = await read({ afterSeq: firstSeq - 1 })
  if (run.length === 0) return null
  const places = new Map<number, ChainHead>([[head.seq, head]])
  for await (const events of readSegment(await readChecked(archive, segment))) {
    for (const event of events) places.set(event.seq, headAfter(event))
  }
  const slice = new TimeSlice(SERVICE)
  for (let last = run.at(-1); last; last = run.at(-1)) {
    for (const entry of run) {
      if (slice.isOver) await slice.next()
      const { seq, id, hash } = entry.event
      const [before, archived] = [places.get(seq - 1), places.get(seq)]
      // The id too: an event planted beside another one has a different id, and can have the same hash.
      if (!before || archived?.lastId !== id || archived.hash !== hash) {
        return `event ${seq} in the table differs from the archived one`
      }
      const problem = entryProblem(before, entry)
      if (problem !== null) return `event ${seq} in the table: ${problem}`
    }
    run = await read({ afterSeq: last.event.seq - 1, seen: last.event })
  }
  return null
}
