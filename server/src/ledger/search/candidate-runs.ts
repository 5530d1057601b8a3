import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { EventFilter } from '../filter/event-filter.ts'
import type { PageOrder, PagePosition } from '../event-page.ts'
import { readFirstSeq } from '../rollup/rollup-store.ts'
import { type BlockBuckets, listBlockBuckets, sumMetadataBytes } from './search-block-store.ts'
import { requiredTokens } from './search-tokens.ts'
import { bucketMayHave } from './token-filter.ts'
import type { SearchToken } from './token-table.ts'

/** Events of a chain that follow each other, both ends included. */
export type Run = { firstSeq: number; lastSeq: number }

/** A block that may have matches: all of them are in its runs. */
export type CandidateBlock = Run & {
  minTimestampMs: number
  maxTimestampMs: number
  hasCounts: boolean
  runs: readonly Run[]
  /** How many events the runs have. */
  events: number
  /** Whether each of them has the tokens of the filter, so that it probably matches. */
  isExact: boolean
  /** The tokens of the filter that the block may have. */
  possibleTokens: ReadonlySet<SearchToken>
}

/** All matches of a filter are in these blocks, or above `seenSeq`, where events are not in blocks yet. */
export type Candidates = { blocks: readonly CandidateBlock[]; seenSeq: number; headSeq: number }

/** The most buckets to read per block. A filter with more is searched by some of its conditions. */
export const TOKENS_READ_MAX = 24
/** The most buckets to read per search: 2 MiB. */
const BUCKETS_READ_MAX = 16_384
/** Above this many events or this much metadata that is not in blocks, a search scans in the order of the list. */
const UNCOVERED_EVENTS_MAX = 20_000
const UNCOVERED_BYTES_MAX = 4 * 1_024 * 1_024

/**
 * Finds the blocks that may have matches. They stay valid: blocks never change, and later events are above
 * `seenSeq`. Returns null if blocks can't rule out any event, or if there is too much to read.
 */
export async function findCandidates(
  db: Queryable,
  { workspaceId, filter }: { workspaceId: WorkspaceId; filter: EventFilter },
): Promise<Candidates | null> {
  const lists = chooseLists(requiredTokens(filter))
  if (lists.length === 0) return null
  const { fromMs, toMs } = filter
  const tokens = lists.flat()
  // Events before this one are no longer in the table.
  const afterSeq = await readFirstSeq(db, workspaceId)
  const blocksMax = Math.floor(BUCKETS_READ_MAX / tokens.length)
  const query = { workspaceId, afterSeq, fromMs, toMs, tokens, limit: blocksMax + 1 }
  const { blocks, seenSeq, headSeq } = await listBlockBuckets(db, query)
  if (blocks.length > blocksMax || headSeq - seenSeq > UNCOVERED_EVENTS_MAX) return null
  const uncovered = { workspaceId, afterSeq: seenSeq }
  if ((await sumMetadataBytes(db, uncovered)) > UNCOVERED_BYTES_MAX) return null
  return { blocks: blocks.flatMap((block) => toCandidate(block, lists)), seenSeq, headSeq }
}

/**
 * Finds out which events of a segment may match. Returns a function that tells whether a run has such events.
 * Events that were archived before there were blocks always may.
 */
export async function findArchivedCandidates(
  db: Queryable,
  {
    segment: { workspaceId, firstSeq, lastSeq },
    filter,
  }: {
    segment: { workspaceId: WorkspaceId; firstSeq: number; lastSeq: number }
    filter: EventFilter
  },
): Promise<(run: { firstSeq: number; lastSeq: number }) => boolean> {
  const lists = chooseLists(requiredTokens(filter))
  if (lists.length === 0) return () => true
  const { fromMs, toMs } = filter
  const tokens = lists.flat()
  const blocksMax = Math.floor(BUCKETS_READ_MAX / tokens.length)
  const range = { afterSeq: firstSeq - 1, toSeq: lastSeq, fromMs, toMs }
  const query = { workspaceId, ...range, tokens, limit: blocksMax + 1 }
  const covered = await listBlockBuckets(db, query)
  if (covered.blocks.length > blocksMax) return () => true
  const runs = covered.blocks
    .flatMap((block) => toCandidate(block, lists))
    .flatMap((block) => block.runs)
  return (run) =>
    run.firstSeq <= covered.floorSeq ||
    run.lastSeq > covered.seenSeq ||
    runs.some(({ firstSeq: first, lastSeq: last }) => first <= run.lastSeq && last >= run.firstSeq)
}

/** Short lists first, because a single value rules out more than one of many. */
function chooseLists(lists: readonly SearchToken[][]): SearchToken[][] {
  const chosen: SearchToken[][] = []
  let tokens = 0
  for (const list of lists.toSorted((a, b) => a.length - b.length)) {
    tokens += list.length
    if (tokens > TOKENS_READ_MAX) break
    chosen.push(list)
  }
  return chosen
}

/** Nothing if no slice of the block may have a match. */
function toCandidate(block: BlockBuckets, lists: readonly SearchToken[][]): CandidateBlock[] {
  const { sliceEvents, buckets, ...span } = block
  const { firstSeq, lastSeq } = block
  const possibleTokens = new Set<SearchToken>()
  const size = sliceEvents ?? lastSeq - firstSeq + 1
  const runs: Run[] = []
  let events = 0
  for (let slice = 0, start = firstSeq; start <= lastSeq; slice += 1, start += size) {
    if (buckets !== null && !mayMatch(buckets, lists, slice, possibleTokens)) continue
    const end = Math.min(start + size - 1, lastSeq)
    const before = runs.at(-1)
    if (before && before.lastSeq === start - 1) before.lastSeq = end
    else runs.push({ firstSeq: start, lastSeq: end })
    events += end - start + 1
  }
  return runs.length === 0 ? [] : [{ ...span, runs, events, isExact: false, possibleTokens }]
}

function mayMatch(
  buckets: readonly Buffer[],
  lists: readonly SearchToken[][],
  slice: number,
  possibleTokens: Set<SearchToken>,
): boolean {
  let nth = 0
  let isPossible = true
  for (const list of lists) {
    let hasOne = false
    for (const token of list) {
      const bucket = buckets[nth]
      nth += 1
      if (!bucket || !bucketMayHave(bucket, token, slice)) continue
      possibleTokens.add(token)
      hasOne = true
    }
    isPossible &&= hasOne
  }
  return isPossible
}

/** How many blocks a statement reads at least if they overlap in time. */
const OVERLAPPING_BLOCKS_MAX = 8

/** The runs to read, and where the list continues after them. Null if they include all matches. */
export type SearchRound = { runs: readonly Run[]; seenSeq: number; untilMs: number | null }

/** Whether reading these blocks and the events that are not in blocks is less work than reading all events. */
export function areFew(blocks: readonly CandidateBlock[], eventsTotal: number): boolean {
  return blocks.reduce((sum, { events }) => sum + events, 0) <= eventsTotal / 2
}

/** Where a page continues, in which order, and how many events it has. */
type PageRange = { after: PagePosition | null; order?: PageOrder; limit: number }

/** The blocks that a page hasn't reached the end of, in the order of the list. */
export function listBlocksLeft(
  { blocks }: Candidates,
  { after, order = 'desc' }: PageRange,
): CandidateBlock[] {
  const isDone = (block: CandidateBlock) =>
    after !== null &&
    (order === 'desc'
      ? block.minTimestampMs > after.timestampMs
      : block.maxTimestampMs < after.timestampMs)
  const startOf = ({ minTimestampMs, maxTimestampMs }: CandidateBlock) =>
    order === 'desc' ? -maxTimestampMs : minTimestampMs
  return blocks.filter((block) => !isDone(block)).toSorted((a, b) => startOf(a) - startOf(b))
}

/**
 * Chooses blocks whose runs have together as many events as `blocksMax` blocks, or that fill the page `blocksMax`
 * times. Null if that is too few.
 */
export function chooseRuns(
  left: readonly CandidateBlock[],
  { after, order = 'desc', limit }: PageRange,
  { seenSeq, blocksMax }: { seenSeq: number; blocksMax: number },
): SearchRound | null {
  let taken = 0
  let share = 0
  let matches = 0
  const shareOf = (block: CandidateBlock | undefined) =>
    block ? block.events / (block.lastSeq - block.firstSeq + 1) : 0
  const take = () => {
    const block = left[taken]
    share += shareOf(block)
    if (block?.isExact) matches += block.events
    taken += 1
  }
  const isEnough = () => share + shareOf(left[taken]) > blocksMax || matches > limit * blocksMax
  take()
  while (taken < left.length && !isEnough()) take()
  // The round must get beyond the position that it starts at.
  while (taken < left.length && !isBeyond(left[taken], after, order)) take()
  if (share > Math.max(OVERLAPPING_BLOCKS_MAX, blocksMax)) return null
  const next = left[taken]
  const untilMs = next ? (order === 'desc' ? next.maxTimestampMs : next.minTimestampMs) : null
  return { runs: left.slice(0, taken).flatMap(({ runs }) => runs), seenSeq, untilMs }
}

function isBeyond(
  block: CandidateBlock | undefined,
  after: PagePosition | null,
  order: PageOrder,
): boolean {
  if (!block || after === null) return true
  return order === 'desc'
    ? block.maxTimestampMs < after.timestampMs
    : block.minTimestampMs > after.timestampMs
}
