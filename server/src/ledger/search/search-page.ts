import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { hasIndexedField, type ListQuery, readPartialPage } from '../event-list-store.ts'
import type { PartialPage } from '../event-page.ts'
import {
  type CandidateBlock,
  type Candidates,
  chooseRuns,
  findCandidates,
  listBlocksLeft,
  type SearchRound,
} from './candidate-runs.ts'
import { readCandidateRuns } from './candidate-store.ts'
import { narrowRuns } from './posted-runs.ts'

/** How much the first round reads. A block has at most 2 MiB of metadata. */
const BLOCKS_FIRST = 1
const BLOCKS_MAX = 40
/** A round that took less is followed by a larger one, and one that took more by one of half the size. */
const ROUND_MS = 100
const GROWTH_MAX = 4
/** How much more the next round reads than should suffice to fill the page. */
const MARGIN = 1.25

/** How many blocks to narrow by their postings before each round. */
const BLOCKS_NARROWED = 16

/** What a request knows about the blocks of a workspace after its first round. */
type Progress = {
  candidates: Candidates | null
  /** The blocks whose postings were read. */
  narrowed: Map<number, CandidateBlock>
  rounds: number
  blocksMax: number
}

/** A search of one request, which reads pages until it has found enough. */
export class BlockSearch {
  readonly #progress = new Map<WorkspaceId, Progress>()

  /**
   * Reads a page like `readPartialPage`, but skips blocks that can't match. If an index fits another condition of
   * the filter, every other round scans that: each round continues where the last one ended, so the one that gets
   * further decides how fast the search is.
   */
  async readPage(db: Queryable, query: ListQuery): Promise<PartialPage> {
    const { workspaceId, filter, conditions } = query
    let progress = this.#progress.get(workspaceId)
    if (!progress) {
      const candidates = await findCandidates(db, query)
      progress = { candidates, narrowed: new Map(), rounds: 0, blocksMax: BLOCKS_FIRST }
      this.#progress.set(workspaceId, progress)
    }
    const { rounds, blocksMax } = progress
    progress.rounds += 1
    const isScanning = hasIndexedField(filter, conditions) && rounds % 2 === 0
    const round = isScanning ? null : await chooseRound(db, query, progress)
    if (round === null) return await readPartialPage(db, query)
    const startedAtMs = performance.now()
    const page = await readCandidateRuns(db, query, round)
    const isFast = performance.now() - startedAtMs < ROUND_MS
    const growth = isFast ? growthFor(page.events.length, query.limit) : 1 / 2
    progress.blocksMax = Math.min(BLOCKS_MAX, Math.max(1, blocksMax * growth))
    return page
  }
}

/** Null if reading blocks takes longer than reading the events in the order of the list. */
async function chooseRound(
  db: Queryable,
  query: ListQuery,
  { candidates, narrowed, blocksMax }: Progress,
): Promise<SearchRound | null> {
  if (candidates === null) return null
  const left = listBlocksLeft(candidates, query)
  const unknown = left.slice(0, BLOCKS_NARROWED).filter(({ firstSeq }) => !narrowed.has(firstSeq))
  const found = await narrowRuns(db, query, unknown)
  for (const block of unknown) narrowed.set(block.firstSeq, found.get(block.firstSeq) ?? block)
  const known = left.map((block) => narrowed.get(block.firstSeq) ?? block)
  return chooseRuns(known, query, { seenSeq: candidates.seenSeq, blocksMax })
}

/** How much larger the next round is, so that it finds the rest of the page. */
function growthFor(found: number, limit: number): number {
  return Math.min(GROWTH_MAX, (MARGIN * (limit - found)) / Math.max(1, found))
}
