import { ApiError } from '../../errors.ts'
import { coreText, type EventCore } from '../../ledger/chain.ts'
import { readShortRun, type ShortRunReads } from '../../ledger/read-short-run.ts'
import { listCores } from '../../ledger/tree/core-store.ts'
import { TILE_WIDTH } from '../../ledger/tree/tile.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { rowSlice } from '../../platform/scheduling/row-cost.ts'
import { hasExports, type Plan } from '../../tenancy/plans.ts'

const LENGTH_BYTES = 2

/**
 * The cores of a run of at most 256 events, as an entry bundle of C2SP tlog-tiles: each with its length in two
 * bytes. They contain commitments, but no personal data. A core has a few kilobytes at most.
 */
export async function readEntryBundle(
  deps: ShortRunReads,
  run: { workspaceId: WorkspaceId; number: number; width: number; plan: Plan },
): Promise<Buffer> {
  const { workspaceId } = run
  const afterSeq = run.number * TILE_WIDTH
  const toSeq = afterSeq + run.width
  const hot = await readHot(deps, { workspaceId, afterSeq, toSeq, limit: run.width })
  if (hot.length === run.width) return await bundleOf(hot)
  if (!hasExports(run.plan)) {
    throw new ApiError('plan_required', {
      message: 'These events are archived, and reading them requires a plan with exports.',
    })
  }
  return await bundleOf(await readShortRun(deps, { workspaceId, fromSeq: afterSeq + 1, toSeq }))
}

async function readHot(
  { database: { db }, acquire }: ShortRunReads,
  range: Parameters<typeof listCores>[1],
): Promise<EventCore[]> {
  using _slot = await acquire()
  return await listCores(db, range)
}

/** In slices of the company's share of the main thread, because a bundle takes milliseconds. */
async function bundleOf(events: readonly EventCore[]): Promise<Buffer> {
  const parts: Buffer[] = []
  const slice = rowSlice()
  await slice.next()
  for (const event of events) {
    const entry = Buffer.from(coreText(event))
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt16BE(entry.length)
    parts.push(length, entry)
    if (slice.isOver) await slice.next()
  }
  return Buffer.concat(parts)
}
