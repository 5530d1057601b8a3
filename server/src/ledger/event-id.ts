import { idTimeMs, newId } from '../platform/id.ts'
import type { EventId } from './event.ts'

/** The number of values that the last 12 hex digits of an id can have. */
const TAIL_VALUES = 2 ** 48
const STEP_MAX = 2 ** 20

/**
 * The id of the next event of a chain. Within a workspace, id order is chain order, whatever the clocks do:
 * if the time hasn't advanced since the last id, the id is the last one plus a random step.
 */
export function nextEventId(lastId: EventId | null, nowMs: number, random: () => number): EventId {
  if (lastId === null) return newId(nowMs)
  const lastMs = idTimeMs(lastId)
  if (nowMs > lastMs) return newId(nowMs)
  const tail = Number.parseInt(lastId.slice(24), 16) + 1 + Math.floor(random() * STEP_MAX)
  // If the tail overflows, use the next millisecond. That takes about 2^28 events in one millisecond.
  if (tail >= TAIL_VALUES) return newId(lastMs + 1)
  return appendTail(lastId, tail)
}

function appendTail(lastId: EventId, tail: number): EventId {
  const text = `${lastId.slice(0, 24)}${tail.toString(16).padStart(12, '0')}`
  return text as EventId // A valid id with other digits in its random part.
}
