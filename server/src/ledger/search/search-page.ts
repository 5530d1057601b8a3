import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { hasIndexedField, type ListQuery, readPartialPage } from '../event-list-store.ts'
import type { PartialPage } from '../event-page.ts'
import { type Candidates, chooseRuns, findCandidates } from './candidate-runs.ts'
import { readCandidateRuns } from './candidate-store.ts'
import { BLOCK_EVENTS } from './search-blocks.ts'

/** A later round reads more, because few of the first events match. */
const GROWTH_MAX = 8

/** What a request knows about the blocks of a workspace after its first round. */
type Progress = { candidates: Candidates | null; rounds: number }

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
      progress = { candidates: await findCandidates(db, query), rounds: 0 }
      this.#progress.set(workspaceId, progress)
    }
    const { candidates, rounds } = progress
    progress.rounds += 1
    const isScanning = hasIndexedField(filter, conditions) && rounds % 2 === 0
    if (candidates === null || isScanning) return await readPartialPage(db, query)
    const runsMax = (query.rowsMax / BLOCK_EVENTS) * Math.min(GROWTH_MAX, 2 ** rounds)
    const round = chooseRuns(candidates, query, { runsMax })
    if (round === null) return await readPartialPage(db, query)
    return await readCandidateRuns(db, query, round)
  }
}
