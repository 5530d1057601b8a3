import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { runInSlices, type SliceOwner } from '../../platform/scheduling/time-slice.ts'
import { readHead } from '../event-store.ts'
import { ensureWatermark } from '../watermark-store.ts'
import {
  findTypeWatermark,
  listKnownKeys,
  listKnownTypes,
  listTypedRun,
  moveTypeWatermark,
  type TypeWatermark,
  writeKeys,
  writeTypes,
} from './event-type-store.ts'
import { type KnownType, learnTypes, type TypedEvent, typeKey } from './learn-types.ts'

const EVENTS_PER_RUN_MAX = 5_000
const RUN_BYTES_MAX = 2 * 1_024 * 1_024
/**
 * A run ends before an event whose type has too many stored keys, and after an event with which it has too
 * many keys and JSON types to write. So what it reads and writes stays a few megabytes.
 */
const KEYS_PER_RUN_MAX = 5_000

/**
 * `overtaken`: another node was faster. `more`: more events are waiting. `missed` is the number of events that
 * were deleted from the table before they were counted.
 */
type Advance = { outcome: 'done' | 'more' | 'overtaken'; missed: number }

/**
 * Learns from the next events of a chain. Nothing is locked while it reads and learns: moving the watermark is a
 * compare-and-set in the transaction that writes the counts, so each event is counted exactly once, and a node
 * that was overtaken writes nothing.
 */
export async function advanceEventTypes(
  db: Queryable,
  workspaceId: WorkspaceId,
  {
    eventsMax = EVENTS_PER_RUN_MAX,
    owner,
  }: {
    eventsMax?: number
    /** The company that the work is charged to. Without one, it is the service. */
    owner?: SliceOwner
  } = {},
): Promise<Advance> {
  const { seenSeq: afterSeq } = await readOrCreateWatermark(db, workspaceId)
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  if (headSeq <= afterSeq) return { outcome: 'done', missed: 0 }
  const run = await listTypedRun(db, {
    workspaceId,
    afterSeq,
    toSeq: headSeq,
    limit: eventsMax,
    bytesMax: RUN_BYTES_MAX,
  })
  const stored = await listKnownTypes(db, workspaceId)
  const types = new Map(stored.map((type) => [typeKey(type), type]))
  const { events, typeNos } = cutRun(run.events, types)
  const keys = await listKnownKeys(db, workspaceId, typeNos)
  const learning = learnTypes(events, { types, keys }, KEYS_PER_RUN_MAX)
  const { learned, ...updates } = await runInSlices(learning, owner)
  const last = events[learned - 1]
  const toSeq = last && learned < run.events.length ? last.seq : run.reachedSeq
  const isMoved = await db.transaction().execute(async (trx) => {
    const move = { fromSeq: afterSeq, toSeq, isTruncated: updates.isTruncated }
    if (!(await moveTypeWatermark(trx, workspaceId, move))) return false
    if (updates.types.length > 0) await writeTypes(trx, workspaceId, updates.types)
    if (updates.keys.length > 0) await writeKeys(trx, workspaceId, updates.keys)
    return true
  })
  if (!isMoved) return { outcome: 'overtaken', missed: 0 }
  const missed = toSeq - afterSeq - learned
  return { outcome: toSeq < headSeq ? 'more' : 'done', missed }
}

/**
 * Call this before deleting events up to `toSeq` from the table. Usually they were counted days ago.
 */
export async function learnBeforeDelete(
  db: Queryable,
  { workspaceId, toSeq }: { workspaceId: WorkspaceId; toSeq: number },
): Promise<void> {
  while ((await readOrCreateWatermark(db, workspaceId)).seenSeq < toSeq) {
    await advanceEventTypes(db, workspaceId)
  }
}

async function readOrCreateWatermark(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<TypeWatermark> {
  for (;;) {
    const watermark = await findTypeWatermark(db, workspaceId)
    if (watermark) return watermark
    await ensureWatermark(db, 'event_type_watermark', workspaceId)
  }
}

/** The events that fit into a run, and the stored types among them. */
function cutRun(
  events: readonly TypedEvent[],
  types: ReadonlyMap<string, KnownType>,
): { events: readonly TypedEvent[]; typeNos: number[] } {
  const typeNos = new Set<number>()
  let keys = 0
  for (const [index, event] of events.entries()) {
    const type = types.get(typeKey(event))
    if (!type || typeNos.has(type.typeNo)) continue
    keys += type.keyCount
    if (keys > KEYS_PER_RUN_MAX) return { events: events.slice(0, index), typeNos: [...typeNos] }
    typeNos.add(type.typeNo)
  }
  return { events, typeNos: [...typeNos] }
}
