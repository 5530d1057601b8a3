import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { EventFilter } from '../filter/event-filter.ts'
import { type CandidateBlock, type Run, TOKENS_READ_MAX } from './candidate-runs.ts'
import { listPostedBlocks, type PostedBlock } from './posting-store.ts'
import { markPosted } from './postings.ts'
import { requiredChecks, requiredTokens } from './search-tokens.ts'

/** If a smaller part of a block has to be compared, reading its postings costs more than it saves. */
const SHARE_MIN = 1 / 8
/** If more of these events have the tokens, all of them are compared. */
const KEPT_SHARE_MAX = 1 / 4

/** One mark per event of the block, or null if the postings don't tell which events have the tokens. */
export function findPosted(
  { seed, lists }: PostedBlock,
  { firstSeq, lastSeq, possibleTokens }: CandidateBlock,
  filter: EventFilter,
): Uint8Array | null {
  const events = lastSeq - firstSeq + 1
  let matches: Uint8Array | null = null
  let nth = 0
  for (const anyOf of requiredChecks(filter, seed)) {
    const marks = new Uint8Array(events)
    for (const wanted of anyOf) {
      const list = lists[nth]
      nth += 1
      if (!possibleTokens.has(wanted.token)) continue
      if (!list || !markPosted(list, wanted, marks)) return null
    }
    if (matches === null) matches = marks
    else for (let at = 0; at < events; at += 1) matches[at] = (matches[at] ?? 0) & (marks[at] ?? 0)
  }
  return matches
}

/**
 * Narrows the runs of blocks to the events that have the tokens of the filter. Returns the blocks that it could
 * narrow, by their first sequence number. Rare tokens have no postings.
 */
export async function narrowRuns(
  db: Queryable,
  { workspaceId, filter }: { workspaceId: WorkspaceId; filter: EventFilter },
  blocks: readonly CandidateBlock[],
): Promise<Map<number, CandidateBlock>> {
  const narrowed = new Map<number, CandidateBlock>()
  const tokens = requiredTokens(filter).flat()
  const wide = blocks.filter(
    ({ hasCounts, events, firstSeq, lastSeq }) =>
      hasCounts && events > SHARE_MIN * (lastSeq - firstSeq + 1),
  )
  // With more tokens, some are missing in the candidates.
  if (wide.length === 0 || tokens.length > TOKENS_READ_MAX) return narrowed
  const firstSeqs = wide.map(({ firstSeq }) => firstSeq)
  const rows = await listPostedBlocks(db, { workspaceId, firstSeqs, tokens })
  const posted = new Map(rows.map((row) => [row.firstSeq, row]))
  for (const block of wide) {
    const row = posted.get(block.firstSeq)
    const marks = row && findPosted(row, block, filter)
    if (!marks) continue
    const events = marks.reduce((sum, mark) => sum + mark, 0)
    // Reading many short runs takes longer than comparing a few events more.
    if (events > block.events * KEPT_SHARE_MAX) continue
    const runs = runsOf(marks, block.firstSeq)
    narrowed.set(block.firstSeq, { ...block, runs, events, isExact: true })
  }
  return narrowed
}

function runsOf(marks: Uint8Array, firstSeq: number): Run[] {
  const runs: Run[] = []
  for (const [at, mark] of marks.entries()) {
    if (mark === 0) continue
    const seq = firstSeq + at
    const before = runs.at(-1)
    if (before && before.lastSeq === seq - 1) before.lastSeq = seq
    else runs.push({ firstSeq: seq, lastSeq: seq })
  }
  return runs
}
