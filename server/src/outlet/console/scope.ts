import { findHotFloor, type HotFloor } from '../../ledger/hot-floor.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'
import { ReadPlaces } from './read-places.ts'

/** Workspaces are read side by side, but one request must not take the whole pool. */
const READS_AT_ONCE_MAX = 4
/** Of the node's 20 connections, which are there for calls with keys too. */
const places = new ReadPlaces({ readsMax: 8, waitingMax: 400 })

export type Hot = HotFloor & { fromId: string }

/** What a read sees: workspaces, and from when on. */
export type Scope = { workspaceIds: readonly WorkspaceId[]; hotSinceMs: number }

/** Reads every workspace that has hot events, a few at a time; no statement spans them. */
export async function readEach<T>(
  db: Queryable,
  { workspaceIds, hotSinceMs }: Scope,
  read: (workspaceId: WorkspaceId, hot: Hot) => Promise<T>,
): Promise<T[]> {
  const results: T[] = []
  for (let start = 0; start < workspaceIds.length; start += READS_AT_ONCE_MAX) {
    const turn = workspaceIds.slice(start, start + READS_AT_ONCE_MAX)
    const answers = await Promise.all(
      turn.map((workspaceId) =>
        places.run(async () => {
          const hot = await findHotFloor(db, workspaceId, { hotSinceMs, afterSeq: null })
          const { fromId } = hot
          return fromId === null ? [] : [await read(workspaceId, { ...hot, fromId })]
        }),
      ),
    )
    results.push(...answers.flat())
  }
  return results
}
