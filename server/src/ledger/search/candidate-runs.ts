import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { EventFilter } from '../event-filter.ts'
import type { PageOrder, PagePosition } from '../event-page.ts'
import { readFirstSeq } from '../rollup/rollup-store.ts'
import { type BlockBuckets, listBlockBuckets, sumMetadataBytes } from './search-block-store.ts'
import { requiredTokens, type SearchToken } from './search-tokens.ts'
import { bucketMayHave } from './token-filter.ts'

/** A run of a chain that may have matches, both ends included, and the times of its events. */
type CandidateRun = {
  firstSeq: number
  lastSeq: number
  minTimestampMs: number
  maxTimestampMs: number
}

/** All matches of a filter are in these runs, or above `seenSeq`, where events are not in blocks yet. */
export type Candidates = { runs: readonly CandidateRun[]; seenSeq: number; headSeq: number }

/** The most buckets to read per block. A filter with more is searched by some of its conditions. */
const TOKENS_READ_MAX = 24
/** The most buckets to read per search: 2 MiB. */
const BUCKETS_READ_MAX = 16_384
/** Above this many events or this much metadata that is not in blocks, a search scans in the order of the list. */
const UNCOVERED_EVENTS_MAX = 20_000
const UNCOVERED_BYTES_MAX = 4 * 1_024 * 1_024

/**
 * Finds the runs that may have matches. They stay valid: blocks never change, and later events are above
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
  const runs = blocks
    .filter((block) => mayMatch(block, lists))
    .map(({ buckets: _buckets, ...run }) => run)
  return { runs, seenSeq, headSeq }
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
  const candidates = covered.blocks.filter((block) => mayMatch(block, lists))
  return (run) =>
    run.firstSeq <= covered.floorSeq ||
    run.lastSeq > covered.seenSeq ||
    candidates.some((block) => block.firstSeq <= run.lastSeq && block.lastSeq >= run.firstSeq)
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

function mayMatch({ buckets }: BlockBuckets, lists: readonly SearchToken[][]): boolean {
  if (buckets === null) return true
  let nth = 0
  let isPossible = true
  for (const list of lists) {
    let hasOne = false
    for (const token of list) {
      const bucket = buckets[nth]
      nth += 1
      if (bucket && bucketMayHave(bucket, token)) hasOne = true
    }
    isPossible &&= hasOne
  }
  return isPossible
}

/** How many runs a statement reads at least if they overlap in time. */
const OVERLAPPING_RUNS_MAX = 8

/** The runs to read, and where the list continues after them. Null if they include all matches. */
export type SearchRound = {
  runs: readonly Pick<CandidateRun, 'firstSeq' | 'lastSeq'>[]
  seenSeq: number
  untilMs: number | null
}

/** Whether reading the runs and the events that are not in blocks is less work than reading all events. */
export function areFew({ runs }: Candidates, eventsTotal: number): boolean {
  const events = runs.reduce((sum, { firstSeq, lastSeq }) => sum + lastSeq - firstSeq + 1, 0)
  return events <= eventsTotal / 2
}

/** Returns null if there is too much to read at once. */
export function chooseRuns(
  { runs, seenSeq }: Candidates,
  { after, order = 'desc' }: { after: PagePosition | null; order?: PageOrder },
  { runsMax }: { runsMax: number },
): SearchRound | null {
  const isDone = (run: CandidateRun) =>
    after !== null &&
    (order === 'desc'
      ? run.minTimestampMs > after.timestampMs
      : run.maxTimestampMs < after.timestampMs)
  const startOf = ({ minTimestampMs, maxTimestampMs }: CandidateRun) =>
    order === 'desc' ? -maxTimestampMs : minTimestampMs
  const left = runs.filter((run) => !isDone(run)).toSorted((a, b) => startOf(a) - startOf(b))
  let taken = Math.max(1, Math.floor(runsMax))
  // The round must get beyond the position that it starts at.
  while (taken < left.length && !isBeyond(left[taken], after, order)) taken += 1
  if (taken > Math.max(OVERLAPPING_RUNS_MAX, runsMax)) return null
  const next = left[taken]
  const untilMs = next ? (order === 'desc' ? next.maxTimestampMs : next.minTimestampMs) : null
  return { runs: left.slice(0, taken), seenSeq, untilMs }
}

function isBeyond(
  run: CandidateRun | undefined,
  after: PagePosition | null,
  order: PageOrder,
): boolean {
  if (!run || after === null) return true
  return order === 'desc'
    ? run.maxTimestampMs < after.timestampMs
    : run.minTimestampMs > after.timestampMs
}
