import type { EventFilter } from '../../ledger/event-filter.ts'
import { mayHold } from '../../ledger/reader.ts'
import { listSegments, type Segment } from '../../ledger/segment-store.ts'
import type { ObjectStore } from '../../platform/object-store.ts'
import type { Queryable } from '../../platform/pg.ts'
import type { ExportRange } from './export-job.ts'

const SEGMENTS_PER_READ = 500
const STATS_AT_ONCE = 8

/** The segments that an export will read, in their order. */
export async function* segmentsOf(
  db: Queryable,
  ranges: readonly ExportRange[],
  filter: EventFilter,
): AsyncGenerator<Segment, void, void> {
  for (const { workspaceId, fromSeq, toSeq } of ranges) {
    let nextSeq = fromSeq
    for (;;) {
      const run = { workspaceId, fromSeq: nextSeq, toSeq, limit: SEGMENTS_PER_READ }
      const segments = await listSegments(db, run)
      yield* segments.filter((segment) => mayHold(segment, filter))
      const last = segments.at(-1)
      if (!last || segments.length < SEGMENTS_PER_READ) break
      nextSeq = last.lastSeq + 1
    }
  }
}

/** Asks for every segment that lies in a cold class. Returns how many are not ready to be read. */
export async function requestRestores(
  store: ObjectStore,
  segments: AsyncIterable<Segment>,
): Promise<number> {
  let waiting = 0
  const check = async ({ objectKey }: Segment): Promise<void> => {
    const state = await store.stat(objectKey)
    // One that is missing is reported by the download, which says which.
    if (state === null || state.readiness === 'ready') return
    waiting += 1
    if (state.readiness === 'cold') await store.restore(objectKey)
  }
  let batch: Segment[] = []
  for await (const segment of segments) {
    batch.push(segment)
    if (batch.length < STATS_AT_ONCE) continue
    await Promise.all(batch.map(check))
    batch = []
  }
  await Promise.all(batch.map(check))
  return waiting
}

/** Whether one of them has to be restored. Asks for nothing, and stops at the first. */
export async function hasUnready(
  store: ObjectStore,
  segments: AsyncIterable<Segment>,
): Promise<boolean> {
  const isUnready = async ({ objectKey }: Segment): Promise<boolean> => {
    const state = await store.stat(objectKey)
    return state !== null && state.readiness !== 'ready'
  }
  let batch: Segment[] = []
  for await (const segment of segments) {
    batch.push(segment)
    if (batch.length < STATS_AT_ONCE) continue
    if ((await Promise.all(batch.map(isUnready))).includes(true)) return true
    batch = []
  }
  return (await Promise.all(batch.map(isUnready))).includes(true)
}
