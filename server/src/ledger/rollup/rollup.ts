import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { readHead } from '../event-store.ts'
import { findHotFloor } from '../hot/hot-floor.ts'
import {
  clearRollup,
  countDays,
  addToRollup,
  removeFromRollup,
  ensureRollupHead,
  lockRollup,
  readFirstSeq,
  tryLockRollup,
  writeRollupHead,
} from './rollup-store.ts'
import type { RollupHead } from './rollup-store.ts'
import { settleBlocks } from './value-block-store.ts'
import { settleFrequent } from './value-frequency-store.ts'

/** Up to this many events, `addToRollup` marks frequent values itself. */
const MARKED_RUN_MAX = 5_000

/** The number of events counted, and whether more are waiting. */
type Advance = { events: number; isBehind: boolean }

/**
 * Counts the next events of a chain in one transaction, so that each is counted exactly once. Returns null
 * if another node is updating the roll-up of this workspace.
 */
export async function advanceRollup(
  db: Queryable,
  workspaceId: WorkspaceId,
  { runMax }: { runMax: number },
): Promise<Advance | null> {
  return await db.transaction().execute(async (trx) => {
    const head = await lockOrCreateRollup(trx, workspaceId, tryLockRollup)
    if (!head) return null
    const headSeq = (await readHead(trx, workspaceId))?.seq ?? 0
    const toSeq = Math.min(headSeq, head.seenSeq + runMax)
    if (toSeq <= head.seenSeq) return { events: 0, isBehind: false }
    await writeRollupHead(trx, workspaceId, await countTo(trx, workspaceId, head, toSeq))
    return { events: toSeq - head.seenSeq, isBehind: toSeq < headSeq }
  })
}

/**
 * Call this before deleting events from the table, in the same transaction, so that they are no longer
 * counted. The deleted events must be the oldest ones that remain, up to `toSeq`.
 */
export async function forgetRun(
  trx: Queryable,
  { workspaceId, toSeq }: { workspaceId: WorkspaceId; toSeq: number },
): Promise<void> {
  const head = await lockOrCreateRollup(trx, workspaceId, lockRollup)
  if (!head || toSeq <= head.floorSeq) return
  const countedSeq = Math.min(toSeq, head.seenSeq)
  if (countedSeq > head.floorSeq) {
    await subtractRun(trx, workspaceId, head, countedSeq)
  }
  // Events that were never counted are added to the usage only, which is kept after they are deleted.
  if (toSeq > head.daySeq) await countDays(trx, { workspaceId, afterSeq: head.daySeq, toSeq })
  await writeRollupHead(trx, workspaceId, {
    floorSeq: toSeq,
    seenSeq: Math.max(head.seenSeq, toSeq),
    daySeq: Math.max(head.daySeq, toSeq),
  })
}

/** The number of events that were counted or are no longer counted, and whether more are waiting. */
type FloorMove = { outcome: 'done' | 'more' | 'remade' | 'busy'; events: number }

/**
 * Stops counting events whose hot period is over, and counts those again that a larger plan makes hot.
 * Readers determine the exact floor themselves; this limits how much they have to correct. If events were
 * deleted without `forgetRun`, the counts are wrong, and everything is counted again.
 */
export async function moveRollupFloor(
  db: Queryable,
  workspaceId: WorkspaceId,
  { hotSinceMs, runMax }: { hotSinceMs: number; runMax: number },
): Promise<FloorMove> {
  return await db.transaction().execute(async (trx) => {
    const head = await tryLockRollup(trx, workspaceId)
    if (!head) return { outcome: 'busy', events: 0 }
    const firstSeq = await readFirstSeq(trx, workspaceId)
    if (firstSeq > head.floorSeq) {
      await clearRollup(trx, workspaceId)
      const begin = { ...head, floorSeq: firstSeq, seenSeq: firstSeq }
      await writeRollupHead(trx, workspaceId, begin)
      return { outcome: 'remade', events: 0 }
    }
    const { floorSeq: wantedSeq } = await findHotFloor(trx, workspaceId, {
      hotSinceMs,
      afterSeq: firstSeq,
    })
    if (wantedSeq > head.floorSeq) {
      const toSeq = Math.min(wantedSeq, head.seenSeq, head.floorSeq + runMax)
      if (toSeq <= head.floorSeq) return { outcome: 'done', events: 0 }
      await subtractRun(trx, workspaceId, head, toSeq)
      await writeRollupHead(trx, workspaceId, { ...head, floorSeq: toSeq })
      return { outcome: toSeq < wantedSeq ? 'more' : 'done', events: toSeq - head.floorSeq }
    }
    if (wantedSeq < head.floorSeq) {
      const afterSeq = Math.max(wantedSeq, head.floorSeq - runMax)
      await addRun(trx, workspaceId, head, { afterSeq, toSeq: head.floorSeq })
      await writeRollupHead(trx, workspaceId, { ...head, floorSeq: afterSeq })
      return { outcome: afterSeq > wantedSeq ? 'more' : 'done', events: head.floorSeq - afterSeq }
    }
    return { outcome: 'done', events: 0 }
  })
}

async function lockOrCreateRollup(
  trx: Queryable,
  workspaceId: WorkspaceId,
  lock: typeof lockRollup,
): Promise<RollupHead | null> {
  const head = await lock(trx, workspaceId)
  if (head) return head
  await ensureRollupHead(trx, workspaceId)
  return await lock(trx, workspaceId)
}

async function countTo(
  trx: Queryable,
  workspaceId: WorkspaceId,
  head: RollupHead,
  toSeq: number,
): Promise<RollupHead> {
  await addRun(trx, workspaceId, head, { afterSeq: head.seenSeq, toSeq })
  return { ...head, seenSeq: toSeq, daySeq: Math.max(head.daySeq, toSeq) }
}

/**
 * After a long run, all values are marked again in one pass. If all values are about equally frequent,
 * marking them one by one would mark most of them in each run and unmark them in the next, at twice the
 * cost of counting.
 */
async function addRun(
  trx: Queryable,
  workspaceId: WorkspaceId,
  head: RollupHead,
  { afterSeq, toSeq }: { afterSeq: number; toSeq: number },
): Promise<void> {
  const isMarking = toSeq - afterSeq <= MARKED_RUN_MAX
  await addToRollup(trx, { workspaceId, ...head, afterSeq, toSeq }, { isMarking })
  await settleFrequent(trx, workspaceId, isMarking ? 'few' : 'all')
  await settleBlocks(trx, workspaceId)
}

async function subtractRun(
  trx: Queryable,
  workspaceId: WorkspaceId,
  head: RollupHead,
  toSeq: number,
): Promise<void> {
  await removeFromRollup(trx, { workspaceId, afterSeq: head.floorSeq, toSeq })
  await settleFrequent(trx, workspaceId, 'sparse')
  await settleBlocks(trx, workspaceId)
}
