import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { SealedEvent } from '../../ledger/event.ts'
import { NO_FILTER } from '../../ledger/event-filter.ts'
import { readHotPage } from '../../ledger/hot-page-store.ts'
import { encodeSegment, SEGMENT_ROWS_MAX, summarizeSegment } from '../../ledger/segment.ts'
import { readSegment } from '../../ledger/segment-reader.ts'
import { insertSegment, readArchivedSeq, type Segment } from '../../ledger/segment-store.ts'
import type { Clock } from '../../platform/clock.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import type { ObjectStore } from '../../platform/object-store.ts'
import type { Database } from '../../platform/pg.ts'
import { formatUtcMs } from '../../platform/utc-time.ts'
import { deleteArchivedRun, readFirstHotSeq } from './archive-store.ts'

export type ArchiveDeps = {
  /** Under the keeper's role, which may remove what it has archived. */
  database: Database
  store: ObjectStore
  clock: Clock
  logger: Logger
}

export type ArchiveRun = { workspaceId: WorkspaceId; toSeq: number }

/** What an archiver found that must not be archived: the table differs from the chain it holds. */
export class ArchiveRefusedError extends Error {
  override name = 'ArchiveRefusedError'
}

const ROWS_PER_READ = 4_000
const ROWS_PER_DELETE = 5_000
/** About what a segment may hold before it is packed. */
const SEGMENT_CHARACTERS_MAX = 48 * 1_024 * 1_024

/**
 * Moves a chain's events up to `toSeq` into the archive, segment by segment.
 *
 *   read ─▶ encode ─▶ put ─▶ read back, recompute every hash ─▶ catalogue ─▶ remove
 *
 * It may die at any point and is simply run again. Until the catalogue names a run, the file is
 * nobody's; from then on it is the truth, and what is still in the table of it is removed. Returns how
 * many events were moved.
 */
export async function archiveWorkspace(
  deps: ArchiveDeps,
  { workspaceId, toSeq }: ArchiveRun,
  signal: AbortSignal,
): Promise<number> {
  let archivedSeq = await readArchivedSeq(deps.database.db, workspaceId)
  await removeArchived(deps, workspaceId, archivedSeq)
  let moved = 0
  while (archivedSeq < toSeq && !signal.aborted) {
    const events = await readRun(deps, { workspaceId, toSeq }, archivedSeq + 1)
    const segment = await storeSegment(deps.store, events)
    const isOurs = await insertSegment(deps.database.db, segment, new Date(deps.clock()))
    // Another archiver was quicker: what it catalogued counts, and ours is a file that nobody names.
    archivedSeq = isOurs ? segment.lastSeq : await readArchivedSeq(deps.database.db, workspaceId)
    await removeArchived(deps, workspaceId, archivedSeq)
    if (isOurs) moved += events.length
    const { firstSeq, lastSeq, bytes } = segment
    deps.logger.info({ event: 'segment.archived', workspaceId, firstSeq, lastSeq, bytes, isOurs })
  }
  return moved
}

/** The next events for one segment: of one month of receipt, and of a bounded size. */
async function readRun(
  { database }: ArchiveDeps,
  { workspaceId, toSeq }: ArchiveRun,
  fromSeq: number,
): Promise<SealedEvent[]> {
  const events: SealedEvent[] = []
  let characters = 0
  let nextSeq = fromSeq
  while (nextSeq <= toSeq && events.length < SEGMENT_ROWS_MAX) {
    const limit = Math.min(ROWS_PER_READ, SEGMENT_ROWS_MAX - events.length)
    const query = { workspaceId, fromSeq: nextSeq, toSeq, filter: NO_FILTER, limit }
    const page = await readHotPage(database, query)
    for (const event of page.events) {
      if (event.seq !== nextSeq) throw gapAt(workspaceId, nextSeq)
      const first = events[0] ?? event
      characters += sizeOf(event)
      const isFull = events.length > 0 && characters > SEGMENT_CHARACTERS_MAX
      if (isFull || monthOf(event) !== monthOf(first)) return events
      events.push(event)
      nextSeq += 1
    }
    if (page.lookedSeq >= nextSeq) throw gapAt(workspaceId, nextSeq)
  }
  return events
}

function gapAt(workspaceId: WorkspaceId, seq: number): ArchiveRefusedError {
  return new ArchiveRefusedError(`event ${seq} of workspace ${workspaceId} is missing`)
}

function sizeOf({ actor, resource, metadata }: SealedEvent): number {
  return 512 + (actor?.length ?? 0) + (resource?.length ?? 0) + (metadata?.length ?? 0)
}

function monthOf({ receivedAtMs }: SealedEvent): string {
  return formatUtcMs(receivedAtMs).slice(0, 7)
}

/** Writes the file, reads it back, and holds every hash in it against the table's. */
async function storeSegment(store: ObjectStore, events: readonly SealedEvent[]): Promise<Segment> {
  const [first] = events
  const last = events.at(-1)
  assert(first && last, 'a segment holds an event')
  const bytes = await encodeSegment(events)
  const sha256 = hash('sha256', bytes, 'hex')
  // The name holds a part of the digest: whoever writes it twice writes the same bytes.
  const name = `${String(first.seq).padStart(16, '0')}-${sha256.slice(0, 16)}`
  const objectKey = `${first.workspaceId}/${monthOf(first)}/${name}.parquet`
  await store.put(objectKey, bytes)
  const stored = await store.read(objectKey)
  assert(stored && hash('sha256', stored, 'hex') === sha256, 'the storage returns what was put')
  await refuseOtherEvents(stored, events)
  return {
    ...summarizeSegment(events),
    objectKey,
    bytes: bytes.length,
    sha256,
    footerSha256: null,
    lastId: last.id,
  }
}

/** The reader recomputes each hash from the content; it must be the one the table has. */
async function refuseOtherEvents(bytes: Buffer, events: readonly SealedEvent[]): Promise<void> {
  let place = 0
  for await (const group of readSegment(bytes, {})) {
    for (const event of group) {
      const source = events[place]
      if (source?.hash !== event.hash || source.prevHash !== event.prevHash) {
        throw new ArchiveRefusedError(
          `event ${event.seq} of workspace ${event.workspaceId} is not what its hash says; run annals verify`,
        )
      }
      place += 1
    }
  }
  assert.equal(place, events.length, 'a segment holds what was put into it')
}

/** What the catalogue names is no longer needed in the table. In bounded statements. */
async function removeArchived(
  { database }: ArchiveDeps,
  workspaceId: WorkspaceId,
  archivedSeq: number,
): Promise<void> {
  const firstSeq = await readFirstHotSeq(database.db, workspaceId)
  if (firstSeq === null) return
  for (let seq = firstSeq; seq <= archivedSeq; seq += ROWS_PER_DELETE) {
    const toSeq = Math.min(archivedSeq, seq + ROWS_PER_DELETE - 1)
    await deleteArchivedRun(database.db, { workspaceId, fromSeq: seq, toSeq })
  }
}
