import { type ChainHead, EMPTY_HEAD } from '../../ledger/event.ts'
import { readHead } from '../../ledger/event-store.ts'
import {
  findSegmentOutside,
  listSegments,
  readArchivedSeq,
  type Segment,
} from '../../ledger/segment/segment-store.ts'
import type { LeafPiece, LeafRunTree } from '../../ledger/tree/leaf-run.ts'
import { TILE_WIDTH } from '../../ledger/tree/tile.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { findCompanyOf } from '../../tenancy/workspace/workspace-store.ts'
import { findPlantedBefore } from './verify-entry.ts'
import type { ChainRange, ConfirmedRange, RunRange } from './verify-range.ts'

/** A multiple of a tile's width, so that most ranges start and end with a tile. */
const EVENTS_PER_RANGE = 64 * TILE_WIDTH
const SEGMENTS_PER_READ = 100
const TRIES_MAX = 5

/** The last event before those that are verified. */
export type ChainStart = { seq: number; hash: string }

/** Gets the hashes of a chain in order. */
type LeafConsumer = {
  readonly leafRunTree: LeafRunTree
  addRun: (pieces: readonly LeafPiece[]) => void
  flush: () => Promise<void>
}

type Confirming = {
  workspaceId: WorkspaceId
  /** Called before each try. */
  open: () => Promise<{ start: ChainStart | null; tree: LeafConsumer | null }>
  /** Whatever it throws, `verifyChain` runs into it too. */
  runRange: RunRange
  /** How many ranges of the chain can be verified at the same time, or wait for an earlier one. */
  rangesAheadMax: number
  eventsPerRange?: number
  /** Called with the number of events of each range. */
  onProgress?: (events: number) => void
}

/**
 * Verifies a chain in ranges, several at the same time: each on its own, and then that each one continues the one
 * before. Returns the seq of its last event, or null if something isn't certainly intact. Then `verifyChain` decides.
 */
export async function confirmChain(db: Queryable, chain: Confirming): Promise<number | null> {
  for (let tries = 1; ; tries += 1) {
    const archivedSeq = await readArchivedSeq(db, chain.workspaceId)
    const confirmed = await confirmOnce(db, chain)
    if (confirmed !== null || tries === TRIES_MAX) return confirmed
    // If the archiver made progress meanwhile, events may just have been moved while a range was read.
    if ((await readArchivedSeq(db, chain.workspaceId)) === archivedSeq) return null
  }
}

async function confirmOnce(db: Queryable, chain: Confirming): Promise<number | null> {
  const { workspaceId, runRange, rangesAheadMax, onProgress } = chain
  const { start, tree } = await chain.open()
  // Read first, so that events added meanwhile come after it.
  const end = await readHead(db, workspaceId)
  const companyId = await findCompanyOf(db, workspaceId)
  if (end === null || end.seq < (start?.seq ?? 0)) return null
  if ((await findSegmentOutside(db, workspaceId)) !== null) return null
  if ((await findPlantedBefore(db, workspaceId, companyId ?? undefined)) !== null) return null
  const leafRunTree = tree && tree.leafRunTree
  const ranges = planRanges(db, { ...chain, start, end, companyId, tree: leafRunTree })
  const joined = new JoinedRanges(start, tree)
  const waiting: Promise<ConfirmedRange | null>[] = []
  const joinNext = async (): Promise<boolean> => {
    const range = (await waiting.shift()) ?? null
    if (range === null || !joined.add(range)) return false
    await tree?.flush()
    onProgress?.(range.head.seq - range.start.seq)
    return true
  }
  try {
    for await (const range of ranges) {
      waiting.push(runRange(range).catch(() => null))
      if (waiting.length >= rangesAheadMax && !(await joinNext())) return null
    }
    while (waiting.length > 0) if (!(await joinNext())) return null
    return joined.seq
  } finally {
    await Promise.allSettled(waiting)
  }
}

/** Checks that each range continues the one before it, and passes its leaves on. */
class JoinedRanges {
  readonly #tree: LeafConsumer | null
  #hash: string
  seq: number
  #lastId: ChainHead['lastId'] = null

  constructor(start: ChainStart | null, tree: LeafConsumer | null) {
    this.#tree = tree
    this.seq = start?.seq ?? EMPTY_HEAD.seq
    this.#hash = start?.hash ?? EMPTY_HEAD.hash
  }

  add({ start, head, leaves }: ConfirmedRange): boolean {
    // The first file of the archive can start before the first wanted event, whose hash the range has compared.
    const isFirst = this.#lastId === null
    const isEarlier = isFirst && start.seq < this.seq && head.seq >= this.seq
    const isNext = start.seq === this.seq && start.hash === this.#hash
    if (!isEarlier && !(isNext && (isFirst || start.lastId === this.#lastId))) return false
    this.#tree?.addRun(leaves)
    this.seq = head.seq
    this.#hash = head.hash
    this.#lastId = head.lastId
    return true
  }
}

type Plan = {
  workspaceId: WorkspaceId
  companyId: CompanyId | null
  start: ChainStart | null
  end: ChainHead
  tree: LeafRunTree | null
  eventsPerRange?: number
}

/** The archived files in groups, then the table. The last range is always one of the table. */
async function* planRanges(db: Queryable, plan: Plan): AsyncGenerator<ChainRange, void, void> {
  const { workspaceId, companyId, tree, start, end, eventsPerRange = EVENTS_PER_RANGE } = plan
  const common = { workspaceId, companyId, tree, skipped: null }
  const place = start && { workspaceId, fromSeq: start.seq, toSeq: start.seq, limit: 1 }
  const [around] = place ? await listSegments(db, place) : []
  let head: ChainHead = start ? { ...start, lastId: null } : EMPTY_HEAD
  let isArchived = false
  if (around && around.lastSeq === start?.seq) {
    head = { ...head, lastId: around.lastId }
    isArchived = true
  }
  for (;;) {
    const run = { workspaceId, fromSeq: head.seq + 1, toSeq: Number.MAX_SAFE_INTEGER }
    const segments = await listSegments(db, { ...run, limit: SEGMENTS_PER_READ })
    if (segments.length === 0) break
    for (const group of groupsOf(segments, eventsPerRange)) {
      const [first] = group
      const last = group.at(-1)
      if (!first || !last) continue
      const isWithin = !isArchived && start !== null && first.firstSeq <= start.seq
      const before = { seq: first.firstSeq - 1, hash: first.firstPrevHash, lastId: null }
      const skipped = isWithin ? start : null
      yield { ...common, kind: 'archive', head: isWithin ? before : head, segments: group, skipped }
      head = { seq: last.lastSeq, hash: last.lastHash, lastId: last.lastId }
      isArchived = true
    }
  }
  // Where the table starts, and at the first event, there is no row before the range.
  let first: ChainHead | null = isArchived || start === null ? head : null
  let fromSeq = head.seq
  for (;;) {
    const border = fromSeq + eventsPerRange - (fromSeq % eventsPerRange)
    // The end is compared with the stored head, which is part of the last range.
    const toSeq = border < end.seq ? border : null
    yield { ...common, kind: 'table', head: first, fromSeq, end, toSeq }
    if (toSeq === null) return
    fromSeq = toSeq
    first = null
  }
}

function groupsOf(segments: readonly Segment[], eventsPerRange: number): Segment[][] {
  const groups: Segment[][] = []
  let events = eventsPerRange
  for (const segment of segments) {
    if (events >= eventsPerRange) {
      groups.push([])
      events = 0
    }
    groups.at(-1)?.push(segment)
    events += segment.lastSeq - segment.firstSeq + 1
  }
  return groups
}
