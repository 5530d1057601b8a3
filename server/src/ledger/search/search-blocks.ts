import { randomInt } from 'node:crypto'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { runInSlices, type SliceOwner } from '../../platform/scheduling/time-slice.ts'
import { readHead } from '../event-store.ts'
import { ensureWatermark } from '../watermark-store.ts'
import {
  type BlockEvent,
  type BlockIndex,
  findSearchWatermark,
  insertSearchBlocks,
  listBlockRun,
  moveSearchWatermark,
  type SearchBlock,
} from './search-block-store.ts'
import { buildEventFacts } from './event-facts.ts'
import { buildPostings } from './postings.ts'
import { addTokens } from './search-tokens.ts'
import { buildTokenFilter, SLICES_MAX } from './token-filter.ts'
import { TokenTable } from './token-table.ts'

/**
 * The events of a block. A value that one event in ten thousand has is the worst case: a page of 50 then reads
 * 50 blocks. Larger blocks have more other events, and smaller ones add up to more buckets to read.
 */
export const BLOCK_EVENTS = 1_024
const BLOCKS_PER_RUN_MAX = 4
const RUN_BYTES_MAX = 2 * 1_024 * 1_024
/** What a filter takes at most. That of large events gets more, up to this share of their metadata. */
const FILTER_BYTES_PER_EVENT_MAX = 18
const METADATA_SHARE_MAX = 1 / 32
const POSTING_BYTES_PER_EVENT_MAX = 12
/** More than twice what fits into the largest filter. Growing a larger table takes too long at once. */
const TOKENS_PER_BLOCK_MAX = 100_000
const SEED_MAX = 2 ** 31

/** `overtaken`: another node was faster. `more`: more events are waiting. */
type Advance = 'done' | 'more' | 'overtaken'

/**
 * Puts the next events of a chain into blocks. Nothing is locked while it reads and computes: moving the
 * watermark is a compare-and-set in the transaction that inserts the blocks, so each event is in exactly one
 * block. The last events of a chain wait until they fill a block, unless `isPartial` is true.
 */
export async function advanceSearchBlocks(
  db: Queryable,
  workspaceId: WorkspaceId,
  {
    isPartial = false,
    blockEvents = BLOCK_EVENTS,
    toSeq = Infinity,
    owner,
  }: {
    isPartial?: boolean
    blockEvents?: number
    toSeq?: number
    /** The company that the work is charged to. Without one, it is the service. */
    owner?: SliceOwner
  } = {},
): Promise<Advance> {
  const afterSeq = await readOrCreateWatermark(db, workspaceId)
  const headSeq = Math.min((await readHead(db, workspaceId))?.seq ?? 0, toSeq)
  if (headSeq - afterSeq < (isPartial ? 1 : blockEvents)) return 'done'
  const limit = BLOCKS_PER_RUN_MAX * blockEvents
  const run = { workspaceId, afterSeq, toSeq: headSeq, limit, bytesMax: RUN_BYTES_MAX }
  const { events, lastSeq, isCut } = await listBlockRun(db, run)
  const isWhole = isCut || events.length === limit
  const reachedSeq = isWhole ? lastSeq : headSeq
  // Events that are missing were deleted before they were in a block.
  if (events.length < reachedSeq - afterSeq) {
    return await insertBlocks(db, workspaceId, afterSeq, headSeq, [
      unknownBlock(afterSeq + 1, reachedSeq),
    ])
  }
  const complete = events.length - (events.length % blockEvents)
  const taken = isPartial || complete === 0 ? events : events.slice(0, complete)
  const runs = Array.from({ length: Math.ceil(taken.length / blockEvents) }, (_, nth) => ({
    firstSeq: afterSeq + 1 + nth * blockEvents,
    events: taken.slice(nth * blockEvents, (nth + 1) * blockEvents),
  }))
  const sliceEvents = Math.ceil(blockEvents / SLICES_MAX)
  const blocks = await runInSlices(buildBlocks(runs, sliceEvents), owner)
  return await insertBlocks(db, workspaceId, afterSeq, headSeq, blocks)
}

/** Call this before deleting events up to `toSeq` from the table. Usually they have been in blocks for days. */
export async function coverBeforeDelete(
  db: Queryable,
  { workspaceId, toSeq }: { workspaceId: WorkspaceId; toSeq: number },
): Promise<void> {
  while ((await readOrCreateWatermark(db, workspaceId)) < toSeq) {
    await advanceSearchBlocks(db, workspaceId, { isPartial: true, toSeq })
  }
}

async function readOrCreateWatermark(db: Queryable, workspaceId: WorkspaceId): Promise<number> {
  for (;;) {
    const watermark = await findSearchWatermark(db, workspaceId)
    if (watermark) return watermark.seenSeq
    await ensureWatermark(db, 'search_watermark', workspaceId)
  }
}

async function insertBlocks(
  db: Queryable,
  workspaceId: WorkspaceId,
  afterSeq: number,
  headSeq: number,
  blocks: readonly SearchBlock[],
): Promise<Advance> {
  const toSeq = blocks.at(-1)?.lastSeq ?? afterSeq
  const isMoved = await db.transaction().execute(async (trx) => {
    const move = { fromSeq: afterSeq, toSeq }
    if (!(await moveSearchWatermark(trx, workspaceId, move))) return false
    await insertSearchBlocks(trx, workspaceId, blocks)
    return true
  })
  if (!isMoved) return 'overtaken'
  return toSeq < headSeq ? 'more' : 'done'
}

/** Events that follow each other without a gap. */
type BlockRun = { firstSeq: number; events: readonly BlockEvent[] }

function* buildBlocks(
  runs: readonly BlockRun[],
  sliceEvents: number,
): Generator<void, SearchBlock[], void> {
  const blocks: SearchBlock[] = []
  const table = new TokenTable({ sliceEvents })
  for (const run of runs) {
    const { events } = run
    const span = spanOf(run)
    table.startBlock(randomInt(SEED_MAX))
    const hasTokens = yield* collectTokens(events, table)
    blocks.push({
      ...span,
      index: hasTokens ? yield* buildIndex(events, span.minTimestampMs, table) : null,
    })
  }
  return blocks
}

/** False if there are too many: a filter that full would match most tokens, so it would exclude nothing. */
function* collectTokens(
  events: readonly BlockEvent[],
  table: TokenTable,
): Generator<void, boolean, void> {
  for (const step of addTokens(events, table)) {
    yield step
    if (table.pairCount > TOKENS_PER_BLOCK_MAX) return false
  }
  return true
}

function* buildIndex(
  events: readonly BlockEvent[],
  minTimestampMs: number,
  table: TokenTable,
): Generator<void, BlockIndex, void> {
  const metadataChars = events.reduce((sum, { metadata }) => sum + (metadata?.length ?? 0), 0)
  const bytesMax = Math.max(
    events.length * FILTER_BYTES_PER_EVENT_MAX,
    metadataChars * METADATA_SHARE_MAX,
  )
  const postingBytesMax = Math.max(1_024, events.length * POSTING_BYTES_PER_EVENT_MAX)
  const tokens = buildTokenFilter(table, { bytesMax })
  yield
  const facts = buildEventFacts(events, minTimestampMs)
  yield
  const postings = buildPostings(table, { events: events.length, bytesMax: postingBytesMax })
  yield
  const counts = facts && { seed: table.seed, facts, postings }
  return { sliceEvents: table.sliceEvents, tokens, counts }
}

function spanOf({ firstSeq, events }: BlockRun): Omit<SearchBlock, 'index'> {
  const times = events.map(({ timestampMs }) => timestampMs)
  return {
    firstSeq,
    lastSeq: firstSeq + events.length - 1,
    minTimestampMs: Math.min(...times),
    maxTimestampMs: Math.max(...times),
  }
}

/** Searches always read it. Its missing events can have any timestamp. */
function unknownBlock(firstSeq: number, lastSeq: number): SearchBlock {
  const everMs = { minTimestampMs: EARLIEST_MS, maxTimestampMs: LATEST_MS }
  return { firstSeq, lastSeq, ...everMs, index: null }
}

/** The years 0000 and 9999: no event has a timestamp outside of them. */
const EARLIEST_MS = Date.UTC(-1, 12)
const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
