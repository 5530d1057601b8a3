import { findTypeWatermark } from '../../ledger/event-type/event-type-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { DRIFT_MS, NEW_MS } from './event-type.ts'
import {
  type ListedKey,
  type ListedType,
  listTypeKeys,
  listTypes,
  type TypeConditions,
} from './event-type-list-store.ts'

/** A page ends before the type that would exceed this. A type has up to 200 keys with 6 JSON types each. */
const KEY_ROWS_MAX = 10_000

type TypePage = {
  types: ListedType[]
  /** By the number of their type. */
  keys: ReadonlyMap<number, ListedKey[]>
  /** The next page starts after this type. */
  nextNo: number | null
  isTruncated: boolean
  /** The events that are counted. Null if there are none yet. */
  fromSeq: number | null
  upToSeq: number | null
}

type TypeQuery = TypeConditions & { nowMs: number }

/** A page of a workspace's types with their keys, all from one snapshot. It can have fewer than `limit`. */
export async function readTypePage(db: Queryable, query: TypeQuery): Promise<TypePage> {
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return await snapshot.execute((trx) => readPage(trx, query))
}

async function readPage(
  trx: Queryable,
  { workspaceId, nowMs, limit, ...conditions }: TypeQuery,
): Promise<TypePage> {
  const watermark = await findTypeWatermark(trx, workspaceId)
  const found = await listTypes(trx, {
    workspaceId,
    ...conditions,
    newSince: new Date(nowMs - NEW_MS),
    newAfterSeq: watermark?.baselineSeq ?? 0,
    driftSince: new Date(nowMs - DRIFT_MS),
    // One more than requested shows whether there is another page.
    limit: limit + 1,
  })
  const types = cutPage(found.slice(0, limit))
  const typeNos = types.map(({ typeNo }) => typeNo)
  const keys = await listTypeKeys(trx, workspaceId, typeNos)
  const isStarted = watermark !== null && watermark.seenSeq > watermark.floorSeq
  return {
    types,
    keys: Map.groupBy(keys, ({ typeNo }) => typeNo),
    nextNo: found.length > types.length ? (typeNos.at(-1) ?? null) : null,
    isTruncated: watermark?.isTruncated ?? false,
    fromSeq: isStarted ? watermark.floorSeq + 1 : null,
    upToSeq: isStarted ? watermark.seenSeq : null,
  }
}

/** The types whose keys fit into a page, and at least one. */
function cutPage(types: readonly ListedType[]): ListedType[] {
  let rows = 0
  const end = types.findIndex(({ keyRows }, index) => (rows += keyRows) > KEY_ROWS_MAX && index > 0)
  return end === -1 ? [...types] : types.slice(0, end)
}
