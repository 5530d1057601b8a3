import { type JsonType, pathKeys } from '../../ledger/event-type/metadata-keys.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import type { ListedKey } from './event-type-list-store.ts'

/** How long a type is flagged as new, and a change of its shape as drift. */
export const NEW_MS = 7 * DAY_MS
export const DRIFT_MS = 30 * DAY_MS

export const CHANGE_KINDS = ['KEY_ADDED', 'TYPE_ADDED'] as const

/** A metadata key, whatever its JSON types. */
type MetadataKey = {
  path: string[]
  /** In the order in which they appeared. */
  types: JsonType[]
  events: number
  firstSeenAt: Date
  lastSeenAt: Date
}

/** A key that appeared, or one whose values got another JSON type. */
type ShapeChange = {
  kind: (typeof CHANGE_KINDS)[number]
  path: string[]
  type: JsonType
  seenAt: Date
  seq: number
  eventId: string
}

/** The keys of a type, and its recent changes, newest first. */
export function shapeOf(
  rows: readonly ListedKey[],
  nowMs: number,
): { keys: MetadataKey[]; changes: ShapeChange[] } {
  const keys: MetadataKey[] = []
  const changes: ShapeChange[] = []
  for (const [text, variants] of Map.groupBy(rows, ({ path }) => path)) {
    const path = pathKeys(text)
    const [first, ...others] = variants
    if (!first) continue
    const key = { path, types: [first.jsonType], ...timesOf(first) }
    for (const { jsonType, events, lastSeenAt } of others) {
      key.types.push(jsonType)
      key.events += events
      if (lastSeenAt > key.lastSeenAt) key.lastSeenAt = lastSeenAt
    }
    keys.push(key)
    for (const variant of variants) {
      const { jsonType: type, firstSeenAt: seenAt, firstSeq: seq, firstEventId: eventId } = variant
      if (!variant.isDrift || seenAt.getTime() <= nowMs - DRIFT_MS) continue
      const kind = variant === first ? 'KEY_ADDED' : 'TYPE_ADDED'
      changes.push({ kind, path, type, seenAt, seq, eventId })
    }
  }
  return { keys, changes: changes.toSorted((one, other) => other.seq - one.seq) }
}

function timesOf({ events, firstSeenAt, lastSeenAt }: ListedKey) {
  return { events, firstSeenAt, lastSeenAt }
}
