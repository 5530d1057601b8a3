import { recomputeCoreHash } from '../../ledger/chain.ts'
import type { Frontier } from '../../ledger/tree/merkle.ts'
import { frontierPath, hashPath } from '../../ledger/tree/proof-path.ts'
import { EventMissingError, readCores } from '../../ledger/tree/read-cores.ts'
import { appendLeaves, edgeTiles, type TileId } from '../../ledger/tree/tile.ts'
import { readTiles } from '../../ledger/tree/tile-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import { TimeSlice } from '../../platform/scheduling/time-slice.ts'

export type TreeDeps = {
  database: Pick<Database, 'pool' | 'db'>
  archive: ObjectStore
  signal?: AbortSignal | undefined
}

/** Small enough for one turn of the event loop. */
const LEAVES_PER_SLICE = 1_024

/** The chain is not what it was, or is damaged. The message continues a sentence about the workspace. */
export class ChainRefusedError extends Error {
  override name = 'ChainRefusedError'
}

type ChainStart = { size: number; /** Null if it isn't known. */ lastHash: string | null }

/**
 * The leaf hashes of the events after `size`, recomputed from what they contain. Throws a `ChainRefusedError`
 * if they don't continue the chain.
 */
export async function readLeaves(
  deps: TreeDeps,
  workspaceId: WorkspaceId,
  { start, toSize }: { start: ChainStart; toSize: number },
): Promise<{ leaves: Buffer[]; lastHash: string | null; firstReceivedAtMs: number | null }> {
  const leaves: Buffer[] = []
  let firstReceivedAtMs: number | null = null
  let { size: seq, lastHash } = start
  const slice = new TimeSlice()
  try {
    for await (const page of readCores(deps, { workspaceId, afterSeq: seq, toSeq: toSize })) {
      for (const core of page) {
        const problem = problemOf(core, seq + 1, lastHash)
        if (problem !== null) throw new ChainRefusedError(`event ${seq + 1}: ${problem}`)
        seq += 1
        lastHash = core.hash
        firstReceivedAtMs ??= core.receivedAtMs
        leaves.push(Buffer.from(core.hash, 'hex'))
        if (slice.isOver) await slice.next()
      }
    }
  } catch (error) {
    if (!(error instanceof EventMissingError)) throw error
    throw new ChainRefusedError(error.message, { cause: error })
  }
  return { leaves, lastHash, firstReceivedAtMs }
}

function problemOf(
  core: Parameters<typeof recomputeCoreHash>[0] & { hash: string },
  seq: number,
  lastHash: string | null,
): string | null {
  if (core.seq !== seq) return `seq is ${core.seq}`
  if (lastHash !== null && core.prevHash !== lastHash) {
    return 'prevHash is not the hash of the event that was signed before it'
  }
  const recomputed = recomputeCoreHash(core)
  if (!recomputed.ok) return recomputed.problem
  return recomputed.hash === core.hash ? null : 'its fields do not match its hash'
}

/** Computes, in slices, the frontier after these leaves and what they add to the tiles of each level. */
export async function growTree(
  tree: { size: number; frontier: Frontier },
  leaves: readonly Buffer[],
): Promise<{ frontier: Frontier; levels: Buffer[][] }> {
  const slice = new TimeSlice()
  let { frontier } = tree
  const levels: Buffer[][] = []
  for (let at = 0; at < leaves.length; at += LEAVES_PER_SLICE) {
    const run = leaves.slice(at, at + LEAVES_PER_SLICE)
    frontier = appendLeaves({ size: tree.size + at, frontier }, run, levels)
    if (slice.isOver) await slice.next()
  }
  return { frontier, levels }
}

/** The tiles at the right edge of a stored tree, and its frontier. Null if they are missing or too short. */
export async function readEdge(
  { database: { db } }: TreeDeps,
  workspaceId: WorkspaceId,
  size: number,
): Promise<{ edge: (id: TileId) => Buffer | null; frontier: Frontier } | null> {
  const edge = await readTiles(db, workspaceId, edgeTiles(size))
  const frontier = hashPath(frontierPath(size), edge)
  return frontier && { edge, frontier }
}
