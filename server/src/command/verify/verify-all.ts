import { listHeadSeqs } from '../../ledger/head-seq-store.ts'
import { type RunRange, verifyRange } from '../../outlet/verify/verify-range.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import { isOutage, type Queryable } from '../../platform/pg/database.ts'
import type { KeptCheckpoints } from './kept-checkpoints.ts'
import type { RangeThreadData } from './range-thread.ts'
import { RangeThreads } from './range-threads.ts'
import { type VerifyDeps, verifyWorkspace } from './verify-workspace.ts'
import type { WorkspaceResult } from './workspace-result.ts'

/** Starting a thread takes as long as verifying about this many events. */
const EVENTS_PER_THREAD_MIN = 50_000
/** Verifying a chain without events takes as long as this many events. */
const EVENTS_PER_CHAIN = 100
const HEADS_PER_READ = 10_000

type VerifyWork = {
  workspaces: readonly { id: WorkspaceId; companyId: CompanyId }[]
  /** The checkpoints after which the chains are verified, or null to verify them from their first event. */
  kept: KeptCheckpoints | null
  threadsMax: number
  threadData: RangeThreadData
  /** Fewer events per range and per thread, for tests. */
  eventsPerRange?: number
  eventsPerThreadMin?: number
  /** Called with each result in the order of the workspaces. */
  onResult: (result: WorkspaceResult) => void
  onProgress: (events: number, total: number) => void
}

/**
 * Verifies all chains, several at the same time. A chain is verified in ranges by threads. With little work, no thread is
 * started, and this one verifies the chains one after the other.
 */
export async function verifyAll(deps: VerifyDeps, work: VerifyWork): Promise<WorkspaceResult[]> {
  const { workspaces, kept, onResult, onProgress } = work
  const { threadData, eventsPerRange } = work
  const total = await countEvents(deps.db, work)
  const threadsMax = threadsFor(total, work)
  await using threads = new RangeThreads(threadsMax, threadData)
  const isParallel = threadsMax > 1
  let runRange: RunRange | null = null
  if (isParallel) runRange = (range) => threads.run(range)
  else if (kept) runRange = (range) => verifyRange(deps, deps.archive, range)
  let done = 0
  const options = {
    runRange,
    rangesAheadMax: 2 * threadsMax,
    ...(eventsPerRange !== undefined && { eventsPerRange }),
    onProgress: (events: number) => {
      done = Math.min(done + events, total)
      onProgress(done, total)
    },
  }
  const results: WorkspaceResult[] = []
  const running: Promise<WorkspaceResult>[] = []
  const takeNext = async (): Promise<void> => {
    const result = await running.shift()
    if (!result) return
    results.push(result)
    onResult(result)
  }
  for (const { id: workspaceId } of workspaces) {
    const checkpoint = kept?.get(workspaceId) ?? null
    const verifying = verifyWorkspace(deps, { ...options, workspaceId, kept: checkpoint })
    // The error is handled where the promise is awaited. This prevents an unhandled rejection until then.
    verifying.catch(() => {})
    running.push(verifying)
    if (running.length > (isParallel ? threadsMax : 0)) await takeNext()
  }
  while (running.length > 0) await takeNext()
  return results
}

/** How many events there are to verify, for the progress and the number of threads. */
async function countEvents(db: Queryable, { workspaces, kept }: VerifyWork): Promise<number> {
  let events = 0
  try {
    for (let start = 0; start < workspaces.length; start += HEADS_PER_READ) {
      const ids = workspaces.slice(start, start + HEADS_PER_READ).map(({ id }) => id)
      for (const [id, seq] of await listHeadSeqs(db, ids)) {
        events += Math.max(0, seq - (kept?.get(id)?.size ?? 0))
      }
    }
  } catch (error) {
    // A value that can't be read is reported with its workspace.
    if (isOutage(error)) throw error
  }
  return events
}

function threadsFor(events: number, work: VerifyWork): number {
  const { workspaces, threadsMax, eventsPerThreadMin = EVENTS_PER_THREAD_MIN } = work
  const cost = events + workspaces.length * EVENTS_PER_CHAIN
  return Math.max(1, Math.min(threadsMax, Math.ceil(cost / eventsPerThreadMin)))
}
