import { ApiError } from '../../errors.ts'
import { coreText, type EventCore } from '../../ledger/chain.ts'
import { readShortRun, type ShortRunReads } from '../../ledger/read-short-run.ts'
import { listCores } from '../../ledger/tree/core-store.ts'
import { TILE_WIDTH } from '../../ledger/tree/tile.ts'
import type { WorkspaceId } from '../../platform/id.ts'
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
  if (hot.length === run.width) return bundleOf(hot)
  if (!hasExports(run.plan)) {
    throw new ApiError('plan_required', {
      message: 'These events are archived, and reading them requires a plan with exports.',
    })
  }
  return bundleOf(await readShortRun(deps, { workspaceId, fromSeq: afterSeq + 1, toSeq }))
}

async function readHot(
  { database: { db }, acquire }: ShortRunReads,
  range: Parameters<typeof listCores>[1],
): Promise<EventCore[]> {
  using _slot = await acquire()
  return await listCores(db, range)
}

function bundleOf(events: readonly EventCore[]): Buffer {
  return Buffer.concat(
    events.flatMap((event) => {
      const entry = Buffer.from(coreText(event))
      const length = Buffer.alloc(LENGTH_BYTES)
      length.writeUInt16BE(entry.length)
      return [length, entry]
    }),
  )
}
