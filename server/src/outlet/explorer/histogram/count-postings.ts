import { EQUALITY_FIELDS, hasReceivedRange } from '../../../ledger/filter/event-filter.ts'
import { type CandidateBlock, TOKENS_READ_MAX } from '../../../ledger/search/candidate-runs.ts'
import { type EventFacts, readEventFacts } from '../../../ledger/search/event-facts.ts'
import { listCountedBlocks } from '../../../ledger/search/posting-store.ts'
import { findPosted } from '../../../ledger/search/posted-runs.ts'
import { requiredTokens } from '../../../ledger/search/search-tokens.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { CountQuery, EventCount } from './event-count-store.ts'

/** With more, a search reads the events, and its time limit applies. */
const BLOCKS_MAX = 4_096
/** About half a megabyte. */
const BLOCKS_PER_STATEMENT = 64

/** No field of an event up to `textSeq` contains the text of the filter, so its matches are all in the metadata. */
export type PostingOptions = { textSeq?: number }

/**
 * Counts the matches in blocks by their postings, without reading the events. Returns the blocks that it can't
 * count: a posting is missing for a rare value, for a block of an older release, and above the limit on its size.
 */
export async function countPostings(
  db: Queryable,
  query: CountQuery,
  blocks: readonly CandidateBlock[],
  { textSeq = 0 }: PostingOptions = {},
): Promise<{ counts: EventCount[]; rest: CandidateBlock[] }> {
  const { workspaceId, hot, filter } = query
  const tokens = requiredTokens(filter).flat()
  // With more tokens, some are missing in the candidates.
  if (!canCount(query) || tokens.length > TOKENS_READ_MAX || blocks.length > BLOCKS_MAX) {
    return { counts: [], rest: [...blocks] }
  }
  const toSeq = filter.text === null ? Infinity : textSeq
  const isWhole = ({ hasCounts, firstSeq, lastSeq }: CandidateBlock) =>
    hasCounts && firstSeq > hot.floorSeq && lastSeq <= toSeq
  const rest = blocks.filter((block) => !isWhole(block))
  const whole = blocks.filter(isWhole)
  const sums = new Sums(query)
  for (let start = 0; start < whole.length; start += BLOCKS_PER_STATEMENT) {
    const some = whole.slice(start, start + BLOCKS_PER_STATEMENT)
    const firstSeqs = some.map(({ firstSeq }) => firstSeq)
    const rows = await listCountedBlocks(db, { workspaceId, firstSeqs, tokens })
    const posted = new Map(rows.map((row) => [row.firstSeq, row]))
    for (const block of some) {
      const row = posted.get(block.firstSeq)
      const marks = row && findPosted(row, block, filter)
      if (row && marks) sums.add(block, readEventFacts(row.facts), marks)
      else rest.push(block)
    }
  }
  return { counts: sums.list(), rest }
}

/** Facts have no other fields. */
function canCount({ filter, by, contains }: CountQuery): boolean {
  const { text, textIn, anyOf, excluded } = filter
  const unknown = EQUALITY_FIELDS.filter(
    (field) => field !== 'category' && field !== 'action' && field !== 'traceId',
  )
  return (
    contains === undefined &&
    !hasReceivedRange(filter) &&
    (text === null || textIn === 'metadata') &&
    (by === 'none' || by === 'category' || by === 'action') &&
    [anyOf, excluded, ...unknown.map((field) => filter[field])].every((one) => one === null)
  )
}

/** Sums per value and bar. */
class Sums {
  readonly #query: CountQuery
  readonly #starts: readonly number[]
  readonly #sums = new Map<string | null, Float64Array>()

  constructor(query: CountQuery) {
    this.#query = query
    this.#starts = query.bars ?? []
  }

  add(block: CandidateBlock, facts: EventFacts, marks: Uint8Array): void {
    const { by, filter, range } = this.#query
    const { offsetsMs, categoryCodes, actionCodes, categories, actions } = facts
    const category = filter.category === null ? null : categories.indexOf(filter.category)
    const action = filter.action === null ? null : actions.indexOf(filter.action)
    const codes = by === 'action' ? actionCodes : categoryCodes
    const sums = (by === 'action' ? actions : categories).map((value) => this.#of(value))
    let bar = 0
    for (let at = 0; at < marks.length; at += 1) {
      if (marks[at] === 0) continue
      if (category !== null && categoryCodes[at] !== category) continue
      if (action !== null && actionCodes[at] !== action) continue
      const ms = block.minTimestampMs + (offsetsMs[at] ?? 0)
      if (ms < range.fromMs || ms >= range.toMs) continue
      // Most events are in the same bar as the one before.
      if (!this.#isIn(bar, ms)) bar = this.#barOf(ms)
      const sum = sums[codes[at] ?? 0]
      if (sum) sum[bar] = (sum[bar] ?? 0) + 1
    }
  }

  list(): EventCount[] {
    return [...this.#sums].flatMap(([value, sums]) =>
      [...sums.entries()]
        .filter(([, events]) => events > 0)
        .map(([bar, events]) => ({ bar: this.#query.bars && bar, value, events })),
    )
  }

  #of(value: string): Float64Array {
    const { by, values } = this.#query
    const isCounted = by !== 'none' && (values === null || values.includes(value))
    const key = isCounted ? value : null
    const known = this.#sums.get(key)
    if (known) return known
    const sums = new Float64Array(Math.max(1, this.#starts.length))
    this.#sums.set(key, sums)
    return sums
  }

  /** The first bar has no start and the last one no end, as in `grouped`. */
  #isIn(bar: number, ms: number): boolean {
    const start = this.#starts[bar] ?? -Infinity
    const end = this.#starts[bar + 1] ?? Infinity
    return (bar === 0 || ms >= start) && ms < end
  }

  #barOf(ms: number): number {
    let low = 0
    let high = this.#starts.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#starts[middle] ?? 0) <= ms) low = middle + 1
      else high = middle
    }
    return Math.max(0, low - 1)
  }
}
