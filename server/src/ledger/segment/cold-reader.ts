import assert from 'node:assert/strict'
import { idTimeMs } from '../../platform/id.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import { sha256InSlices } from '../../platform/scheduling/sliced-hash.ts'
import type { ColdCache } from './cold-cache.ts'
import type { EventId, SealedEvent } from '../event.ts'
import { rowSlice } from '../../platform/scheduling/row-cost.ts'
import {
  comparesMetadata,
  type EventFilter,
  matchEvent,
  NO_FILTER,
} from '../filter/event-filter.ts'
import type { PageLimit } from '../hot/hot-page.ts'
import {
  groupMayContain,
  type OpenSegment,
  openSegment,
  readGroup,
  SegmentDamagedError,
  type SegmentGroup,
  SegmentMissingError,
  type SegmentSource,
} from './segment-reader.ts'
import type { Segment } from './segment-store.ts'

type ColdDeps = {
  archive: ObjectStore
  /** Waits for a slot to read from the archive. The slot is disposed of after the read. */
  acquire: () => Promise<Disposable>
  cache: ColdCache
  /** Aborting it stops the wait for a read and releases its slot. */
  signal: AbortSignal | null
}

/** Thrown when a segment has to be restored before it can be read. */
export class SegmentColdError extends StorageError {
  override name = 'SegmentColdError'
  readonly segment: Segment

  constructor(segment: Segment, cause: StorageError) {
    super(cause.message, { cause, isCold: true })
    this.segment = segment
  }
}

type GroupOptions = { fromSeq: number; toSeq: number; filter: EventFilter }
type ColdReadOptions = GroupOptions & { limit: () => PageLimit }

/**
 * Reads the matching events of a segment, in pages of at most `limit`. Between two pages it keeps only the
 * next seq in memory: everything else is in the cache, or is read again.
 */
export async function* readCold(
  deps: ColdDeps,
  segment: Segment,
  options: ColdReadOptions,
): AsyncGenerator<readonly SealedEvent[], void, void> {
  const reading = { ...deps, segment }
  const toSeq = Math.min(options.toSeq, segment.lastSeq)
  let nextSeq = options.fromSeq
  while (nextSeq <= toSeq) {
    const page = await readPage(reading, { ...options, fromSeq: nextSeq, toSeq })
    nextSeq = page.nextSeq
    if (page.events.length > 0) yield page.events
  }
  deps.cache.opened.release(segment.sha256, reading)
}

/**
 * Finds an event of a segment by its id. The time in an id is never before the receipt of its event, so no
 * group after the last one that began before it can contain the event, and nearly always that group does.
 * Otherwise, this is a binary search, because ids ascend along a chain.
 */
export async function findInSegment(
  deps: Omit<ColdDeps, 'acquire'>,
  segment: Segment,
  id: EventId,
): Promise<SealedEvent | null> {
  const reading = { ...deps, segment, acquire: async () => NO_PERMIT }
  try {
    const { groups } = await retryDamaged(reading, () => open(reading))
    const likeliest = groups.findLast(({ minReceivedAtMs }) => minReceivedAtMs <= idTimeMs(id))
    if (!likeliest) return null
    let low = segment.firstSeq
    let high = lastSeqOf(likeliest)
    for (let seq = high; low <= high; seq = Math.floor((low + high) / 2)) {
      const group = await findGroup(reading, { fromSeq: seq, toSeq: seq, filter: NO_FILTER })
      const [first] = group ?? []
      const last = group?.at(-1)
      assert(group && first && last, 'a segment has no gaps')
      deps.cache.groups.release(groupKey(segment, last.seq), reading)
      if (id < first.id) high = first.seq - 1
      else if (id > last.id) low = last.seq + 1
      else return group.find((event) => event.id === id) ?? null
    }
    return null
  } finally {
    deps.cache.opened.release(segment.sha256, reading)
  }
}

/** Finds the first event of a segment that was received at this time or later. The segment must have one. */
export async function findReceivedInSegment(
  deps: Omit<ColdDeps, 'acquire'>,
  segment: Segment,
  atMs: number,
): Promise<number> {
  const reading = { ...deps, segment, acquire: async () => NO_PERMIT }
  try {
    const { groups } = await retryDamaged(reading, () => open(reading))
    const group = groups.find(({ maxReceivedAtMs }) => maxReceivedAtMs >= atMs)
    assert(group, 'the catalog and the file have the same times')
    if (group.minReceivedAtMs >= atMs) return group.firstSeq
    const lastSeq = lastSeqOf(group)
    const run = { fromSeq: group.firstSeq, toSeq: lastSeq, filter: NO_FILTER }
    const events = await findGroup(reading, run)
    deps.cache.groups.release(groupKey(segment, lastSeq), reading)
    const first = events?.find(({ receivedAtMs }) => receivedAtMs >= atMs)
    assert(first, 'the statistics of a row group match its events')
    return first.seq
  } finally {
    deps.cache.opened.release(segment.sha256, reading)
  }
}

/** The events of a row group up to and including `toSeq`, in chain order. */
type BackwardGroup = { events: readonly SealedEvent[]; firstSeq: number; bytes: number }

/**
 * Reads the row groups of a segment up to `toSeq`, the last one first. Skips groups without an event in the
 * time range of the filter, and those whose run of events can't match. The caller compares the events.
 */
export async function* readBackward(
  deps: Omit<ColdDeps, 'acquire'>,
  segment: Segment,
  {
    toSeq,
    filter,
    mayMatch,
  }: {
    toSeq: number
    filter: EventFilter
    mayMatch: (run: { firstSeq: number; lastSeq: number }) => boolean
  },
): AsyncGenerator<BackwardGroup, void, void> {
  const reading = { ...deps, segment, acquire: async () => NO_PERMIT }
  try {
    const opened = await retryDamaged(reading, () => open(reading))
    for (const group of opened.groups.toReversed()) {
      const lastSeq = lastSeqOf(group)
      const run = { firstSeq: group.firstSeq, lastSeq: Math.min(toSeq, lastSeq) }
      if (run.lastSeq < run.firstSeq || !mayMatch(run)) continue
      const options = { fromSeq: run.firstSeq, toSeq: run.lastSeq, filter }
      if (nextGroup(opened, options) !== group) continue
      const events = (await findGroup(reading, options)) ?? []
      yield {
        events: events.filter(({ seq }) => seq <= run.lastSeq),
        firstSeq: run.firstSeq,
        bytes: group.bytes,
      }
      deps.cache.groups.release(groupKey(segment, lastSeq), reading)
    }
  } finally {
    deps.cache.opened.release(segment.sha256, reading)
  }
}

/** For a caller that limits its reads itself. */
const NO_PERMIT: Disposable = { [Symbol.dispose]: () => {} }

/** One reader's pass over one segment. The cache identifies the reader by this object. */
type Reading = ColdDeps & { segment: Segment }
type ColdPage = { events: readonly SealedEvent[]; nextSeq: number }

/** Reads from the next group that may contain a match. The page can still be empty. */
async function readPage(reading: Reading, options: ColdReadOptions): Promise<ColdPage> {
  const { fromSeq, toSeq, filter, limit } = options
  const group = await findGroup(reading, options)
  const last = group?.at(-1)
  if (!group || !last) return { events: [], nextSeq: toSeq + 1 }
  const { rows, bytes } = limit()
  assert(rows >= 1, 'a page has rows')
  const events: SealedEvent[] = []
  let pageBytes = 0
  const slice = rowSlice()
  const signal = reading.signal ?? undefined
  // Work outside of slices isn't charged to its owner.
  if (comparesMetadata(filter)) await slice.next(signal)
  for (const event of group) {
    if (slice.isOver) await slice.next(signal)
    if (event.seq < fromSeq || event.seq > toSeq) continue
    const match = matchEvent(event, filter)
    if (!(typeof match === 'boolean' ? match : await slice.run(match, signal))) continue
    pageBytes += bytesOf(event)
    const isFull = events.length === rows || pageBytes > bytes
    if (events.length > 0 && isFull) return { events, nextSeq: event.seq }
    events.push(event)
  }
  reading.cache.groups.release(groupKey(reading.segment, last.seq), reading)
  return { events, nextSeq: last.seq + 1 }
}

/** Returns the next group from the cache, or waits for a slot and reads it. */
async function findGroup(
  reading: Reading,
  options: GroupOptions,
): Promise<readonly SealedEvent[] | null> {
  const { acquire, cache, segment } = reading
  const opened = cache.opened.get(segment.sha256, reading)
  const group = opened && nextGroup(opened, options)
  if (opened && !group) return null
  const events = group && cache.groups.get(groupKey(segment, lastSeqOf(group)), reading)
  if (events) return events
  using _permit = await acquire()
  return await retryDamaged(reading, () => readNext(reading, options))
}

async function retryDamaged<T>({ cache, segment }: Reading, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof StorageError && error.isCold) throw new SegmentColdError(segment, error)
    if (!(error instanceof SegmentDamagedError)) throw error
  }
  // Partial reads have no checksum in transit, so retry once: damage on the way must not fail a job.
  cache.opened.drop(segment.sha256)
  return await read()
}

async function open(reading: Reading): Promise<OpenSegment> {
  const { archive, cache, segment, signal } = reading
  const read = async (stop: AbortSignal) => ({
    value: await openCataloged(archive, segment, stop),
    bytes: FOOTER_BYTES,
  })
  return await cache.opened.find(segment.sha256, reading, read, signal)
}

async function readNext(
  reading: Reading,
  options: GroupOptions,
): Promise<readonly SealedEvent[] | null> {
  const { archive, cache, segment, signal } = reading
  const opened = await open(reading)
  const group = nextGroup(opened, options)
  if (group === null) return null
  const read = async (stop: AbortSignal) => {
    // Don't reuse the source that opened the segment: it is bound to the signal of that read.
    const source = partsOf(archive, segment, stop)
    const value = await withFileName(segment, readGroup({ ...opened, source }, group))
    return { value, bytes: value.reduce((sum, event) => sum + bytesOf(event), 0) }
  }
  return await cache.groups.find(groupKey(segment, lastSeqOf(group)), reading, read, signal)
}

function nextGroup({ groups }: OpenSegment, options: GroupOptions): SegmentGroup | null {
  const { fromSeq, toSeq, filter } = options
  const range = {
    fromSeq,
    toSeq,
    ...(filter.fromMs !== null && { fromTimestampMs: filter.fromMs }),
    ...(filter.toMs !== null && { toTimestampMs: filter.toMs }),
  }
  return groups.find((group) => groupMayContain(group, range)) ?? null
}

/** Keyed by the content of the file, because the same bytes are the same events. */
function groupKey({ sha256 }: Segment, lastSeq: number): string {
  return `${sha256}/${lastSeq}`
}

function lastSeqOf({ firstSeq, rows }: SegmentGroup): number {
  return firstSeq + rows - 1
}

/** Estimated memory for a parsed footer, and for an event without its parts. Measured, then rounded up. */
const FOOTER_BYTES = 512 * 1_024
const EVENT_BYTES = 1_536

function bytesOf({ actor, resource, metadata }: SealedEvent): number {
  const parts = (actor?.length ?? 0) + (resource?.length ?? 0) + (metadata?.length ?? 0)
  return EVENT_BYTES + 2 * parts
}

async function openCataloged(
  archive: ObjectStore,
  segment: Segment,
  signal: AbortSignal,
): Promise<OpenSegment> {
  const source = partsOf(archive, segment, signal)
  const opened = await withFileName(segment, openSegment(source, segment.footerSha256))
  const other = IDENTITY_FIELDS.find((name) => opened.footer[name] !== segment[name])
  if (other) {
    throw new SegmentDamagedError(
      `The file ${describeFile(segment)} is not the one in the catalog: its ${other} is ${opened.footer[other]}.`,
    )
  }
  return opened
}

const IDENTITY_FIELDS = ['workspaceId', 'firstSeq', 'lastSeq', 'firstPrevHash', 'lastHash'] as const

function partsOf(archive: ObjectStore, segment: Segment, signal: AbortSignal): SegmentSource {
  return {
    bytes: segment.bytes,
    read: async (start, end) => {
      const part = await archive.readRange(segment.objectKey, start, end, signal)
      if (part === null) throw missing(segment)
      return part
    },
  }
}

/** Returns the bytes of the file after checking their SHA-256 against the catalog. */
export async function readChecked(archive: ObjectStore, segment: Segment): Promise<Buffer> {
  const bytes = await archive.read(segment.objectKey)
  if (bytes === null) throw missing(segment)
  if ((await sha256InSlices(bytes)) !== segment.sha256) {
    throw new SegmentDamagedError(
      `The file ${describeFile(segment)} is not the one that was archived: its SHA-256 differs.`,
    )
  }
  return bytes
}

function missing(segment: Segment): SegmentMissingError {
  return new SegmentMissingError(`The archive has no file ${describeFile(segment)}.`)
}

/** Adds the file's name to an error, because the segment reader only knows events. */
async function withFileName<T>(segment: Segment, reading: Promise<T>): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (!(error instanceof SegmentDamagedError)) throw error
    const message = `The file ${describeFile(segment)} is damaged: ${error.message}.`
    throw new SegmentDamagedError(message, { cause: error })
  }
}

function describeFile({ objectKey, firstSeq, lastSeq }: Segment): string {
  return `${objectKey} (events ${firstSeq} to ${lastSeq})`
}
