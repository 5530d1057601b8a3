import { findKeys, type JsonType } from './metadata-keys.ts'

/** A workspace that puts ids into its actions would otherwise have a type per event. */
const TYPES_MAX = 1_000
/** Per type, inner keys included. */
const KEYS_PER_TYPE_MAX = 200
/** Until a type has this many events, keys that are often absent are still being discovered. */
const ESTABLISHED_EVENTS = 10

/** The fields of an event that its type is learned from. */
export type TypedEvent = {
  id: string
  seq: number
  receivedAtMs: number
  category: string
  action: string
  metadata: string | null
}

/** What is stored about a type. */
export type KnownType = {
  typeNo: number
  category: string
  action: string
  events: number
  keyCount: number
}
export type KnownKey = { typeNo: number; path: string; jsonType: JsonType }

/** A new type, or what a run of events adds to one. */
export type TypeUpdate = {
  typeNo: number
  category: string
  action: string
  events: number
  firstSeq: number
  firstSeenAtMs: number
  lastSeq: number
  lastSeenAtMs: number
  /** All of its keys, not only the new ones. */
  keyCount: number
  isTruncated: boolean
  driftedAtMs: number | null
}

/** A new key or JSON type, or what a run of events adds to one. The first sighting is for new ones. */
export type KeyUpdate = {
  typeNo: number
  path: string
  jsonType: JsonType
  events: number
  firstSeq: number
  firstSeenAtMs: number
  firstEventId: string
  lastSeenAtMs: number
  isDrift: boolean
}

type Learned = {
  types: TypeUpdate[]
  keys: KeyUpdate[]
  isTruncated: boolean
  /** How many of the events this is from. */
  learned: number
}

/** Identifies a type. No text of an event contains U+0000. */
export const typeKey = ({ category, action }: Pick<TypedEvent, 'category' | 'action'>): string =>
  `${category}\0${action}`

/**
 * Learns from events in the order of the chain, until at least `updatesMax` keys or JSON types have to be
 * written. Yields at least once per event.
 */
export function* learnTypes(
  events: readonly TypedEvent[],
  known: { types: ReadonlyMap<string, KnownType>; keys: readonly KnownKey[] },
  updatesMax: number,
): Generator<void, Learned, void> {
  const keysByType = new Map<number, KnownKey[]>()
  for (const key of known.keys) {
    const keys = keysByType.get(key.typeNo)
    if (keys) keys.push(key)
    else keysByType.set(key.typeNo, [key])
  }
  const shapes = new Map<string, TypeShape>()
  let typeCount = known.types.size
  let isTruncated = false
  let learned = 0
  let updates = 0
  for (const event of events) {
    if (updates >= updatesMax) break
    learned += 1
    yield
    const name = typeKey(event)
    let shape = shapes.get(name)
    if (!shape) {
      const type = known.types.get(name)
      if (!type && typeCount >= TYPES_MAX) {
        isTruncated = true
        continue
      }
      if (!type) typeCount += 1
      const typeNo = type?.typeNo ?? typeCount
      const keys = keysByType.get(typeNo) ?? []
      shape = new TypeShape(event, { typeNo, eventsBefore: type?.events ?? 0, keys })
      shapes.set(name, shape)
    }
    updates += yield* shape.add(event)
  }
  const changed = [...shapes.values()]
  return {
    types: changed.map((shape) => shape.update()),
    keys: changed.flatMap((shape) => shape.keyUpdates()),
    isTruncated,
    learned,
  }
}

/** The JSON types of a key. Null for those that are stored and not in this run. */
type KeyTypes = Map<JsonType, KeyUpdate | null>

/** One type during a run. */
class TypeShape {
  readonly #typeNo: number
  readonly #eventsBefore: number
  readonly #first: TypedEvent
  readonly #keys = new Map<string, KeyTypes>()
  #last: TypedEvent
  #events = 0
  #updates = 0
  #isTruncated = false
  #driftedAtMs: number | null = null

  constructor(
    first: TypedEvent,
    { typeNo, eventsBefore, keys }: { typeNo: number; eventsBefore: number; keys: KnownKey[] },
  ) {
    this.#typeNo = typeNo
    this.#eventsBefore = eventsBefore
    this.#first = first
    this.#last = first
    for (const { path, jsonType } of keys) {
      const types = this.#keys.get(path)
      if (types) types.set(jsonType, null)
      else this.#keys.set(path, new Map([[jsonType, null]]))
    }
  }

  /** Returns how many updates of keys the event adds. */
  *add(event: TypedEvent): Generator<void, number, void> {
    const updatesBefore = this.#updates
    let isOuterNew = false
    if (event.metadata !== null) {
      yield* findKeys(event.metadata, (path, jsonType, isInner) => {
        // The inner keys of a new object are no changes of their own.
        const isNew = this.#addKey(event, path, jsonType, isInner && isOuterNew)
        if (!isInner) isOuterNew = isNew
      })
    }
    this.#last = event
    this.#events += 1
    return this.#updates - updatesBefore
  }

  /** Whether the key or its JSON type is new. */
  #addKey(
    { id, seq, receivedAtMs }: TypedEvent,
    path: string | null,
    jsonType: JsonType,
    isPartOfChange: boolean,
  ): boolean {
    if (path === null) {
      this.#isTruncated = true
      return false
    }
    const types = this.#keys.get(path)
    const update = types?.get(jsonType)
    if (update) {
      update.events += 1
      // Events that are received at the same time can be stored in another order.
      update.lastSeenAtMs = Math.max(update.lastSeenAtMs, receivedAtMs)
      return false
    }
    if (!types && this.#keys.size >= KEYS_PER_TYPE_MAX) {
      this.#isTruncated = true
      return false
    }
    const isNew = update === undefined
    const isDrift = isNew && !isPartOfChange && this.#isChange(types, jsonType)
    if (isDrift) this.#driftedAtMs = receivedAtMs
    const added: KeyUpdate = {
      typeNo: this.#typeNo,
      path,
      jsonType,
      events: 1,
      firstSeq: seq,
      firstSeenAtMs: receivedAtMs,
      firstEventId: id,
      lastSeenAtMs: receivedAtMs,
      isDrift,
    }
    this.#updates += 1
    if (types) types.set(jsonType, added)
    else this.#keys.set(path, new Map([[jsonType, added]]))
    return isNew
  }

  /** A key that was only null had no type yet, and null is the absence of a value in any type. */
  #isChange(types: KeyTypes | undefined, jsonType: JsonType): boolean {
    if (!types) return this.#eventsBefore + this.#events >= ESTABLISHED_EVENTS
    return jsonType !== 'null' && [...types.keys()].some((type) => type !== 'null')
  }

  update(): TypeUpdate {
    const first = this.#first
    return {
      typeNo: this.#typeNo,
      category: first.category,
      action: first.action,
      events: this.#events,
      firstSeq: first.seq,
      firstSeenAtMs: first.receivedAtMs,
      lastSeq: this.#last.seq,
      lastSeenAtMs: this.#last.receivedAtMs,
      keyCount: this.#keys.size,
      isTruncated: this.#isTruncated,
      driftedAtMs: this.#driftedAtMs,
    }
  }

  keyUpdates(): KeyUpdate[] {
    return [...this.#keys.values()].flatMap((types) =>
      [...types.values()].filter((update) => update !== null),
    )
  }
}
