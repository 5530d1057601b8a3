import { parseJson } from '../../platform/json/parse-json.ts'

/** What a histogram needs of each event of a block: its timestamp, its category and its action. */
export type EventFacts = {
  /** In milliseconds since the first timestamp of the block. */
  offsetsMs: Uint32Array
  /** Per event, an index of `categories` and of `actions`. */
  categoryCodes: Uint8Array
  actionCodes: Uint8Array
  categories: readonly string[]
  actions: readonly string[]
}

type Facts = { timestampMs: number; category: string; action: string }

const CODES_MAX = 256
const OFFSET_MS_MAX = 2 ** 32 - 1
const HEADER_BYTES = 4
const BYTES_PER_EVENT = 6
/** A block with longer texts than this per event has no facts. */
const TEXT_BYTES_PER_EVENT_MAX = 3

/** Null if the timestamps are too far apart, or if there are too many different categories or actions. */
export function buildEventFacts(events: readonly Facts[], minTimestampMs: number): Buffer | null {
  const categories = new Map<string, number>()
  const actions = new Map<string, number>()
  const facts = Buffer.alloc(HEADER_BYTES + events.length * BYTES_PER_EVENT)
  facts.writeUInt32LE(events.length)
  const categoriesAt = HEADER_BYTES + events.length * 4
  const actionsAt = categoriesAt + events.length
  for (const [position, { timestampMs, category, action }] of events.entries()) {
    const offsetMs = timestampMs - minTimestampMs
    const categoryCode = codeOf(categories, category)
    const actionCode = codeOf(actions, action)
    if (offsetMs > OFFSET_MS_MAX || categoryCode >= CODES_MAX || actionCode >= CODES_MAX) {
      return null
    }
    facts.writeUInt32LE(offsetMs, HEADER_BYTES + position * 4)
    facts[categoriesAt + position] = categoryCode
    facts[actionsAt + position] = actionCode
  }
  const texts = Buffer.from(JSON.stringify([[...categories.keys()], [...actions.keys()]]))
  if (texts.length > Math.max(1_024, events.length * TEXT_BYTES_PER_EVENT_MAX)) return null
  return Buffer.concat([facts, texts])
}

function codeOf(codes: Map<string, number>, value: string): number {
  const known = codes.get(value)
  if (known !== undefined) return known
  codes.set(value, codes.size)
  return codes.size - 1
}

/** Reads what `buildEventFacts` wrote. */
export function readEventFacts(facts: Buffer): EventFacts {
  const events = facts.readUInt32LE(0)
  const categoriesAt = HEADER_BYTES + events * 4
  const actionsAt = categoriesAt + events
  const [categories, actions]: [string[], string[]] = parseJson(
    facts.toString('utf8', actionsAt + events),
  )
  const offsetsMs = new Uint32Array(events)
  for (let position = 0; position < events; position += 1) {
    offsetsMs[position] = facts.readUInt32LE(HEADER_BYTES + position * 4)
  }
  return {
    offsetsMs,
    categoryCodes: facts.subarray(categoriesAt, actionsAt),
    actionCodes: facts.subarray(actionsAt, actionsAt + events),
    categories,
    actions,
  }
}
