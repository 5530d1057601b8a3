import { findTypeHead } from '../../ledger/event-type/event-type-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { DRIFT_MS, NEW_MS } from './event-type.ts'
import {
  type ListedKey,
  type ListedType,
  listTypeKeys,
  listTypes,
  type TypeFlag,
} from './event-type-list-store.ts'

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

/** A page of a workspace's types with their keys. */
export async function readTypePage(
  db: Queryable,
  {
    workspaceId,
    nowMs,
    limit,
    ...conditions
  }: {
    workspaceId: WorkspaceId
    category: string | null
    action: string | null
    flag: TypeFlag | null
    afterNo: number | null
    limit: number
    nowMs: number
  },
): Promise<TypePage> {
  const head = await findTypeHead(db, workspaceId)
  const found = await listTypes(db, {
    workspaceId,
    ...conditions,
    newSince: new Date(nowMs - NEW_MS),
    driftSince: new Date(nowMs - DRIFT_MS),
    // One more than requested shows whether there is another page.
    limit: limit + 1,
  })
  const types = found.slice(0, limit)
  const typeNos = types.map(({ typeNo }) => typeNo)
  const keys = await listTypeKeys(db, workspaceId, typeNos)
  const isStarted = head !== null && head.seenSeq > head.floorSeq
  return {
    types,
    keys: Map.groupBy(keys, ({ typeNo }) => typeNo),
    nextNo: found.length > limit ? (typeNos.at(-1) ?? null) : null,
    isTruncated: head?.isTruncated ?? false,
    fromSeq: isStarted ? head.floorSeq + 1 : null,
    upToSeq: isStarted ? head.seenSeq : null,
  }
}
