import type { SearchToken, TokenTable } from './token-table.ts'

/*
 * The events of a block that have its frequent tokens, so that a search can count them without reading them. A
 * token is here with its check, so together they are a hash of 64 bits, half of which depends on a random seed.
 *
 * Postings are in 64 lists, by the first six bits of the token. A table of their ends comes first. A posting is a
 * token, a check, the number of events, and their positions: none if all events of the block have it, otherwise
 * two bytes per event or one bit per event of the block, whichever is shorter.
 */

const LISTS = 64
export const POSTINGS_HEADER_BYTES = LISTS * 2
const POSTING_HEADER_BYTES = 10
/** Rarer tokens are in a few slices, which can be read. */
const EVENTS_MIN = 3
const BYTES_MAX = 65_535

/** Leaves out the rarest tokens if all of them need more than `bytesMax`. */
export function buildPostings(
  table: TokenTable,
  { events, bytesMax }: { events: number; bytesMax: number },
): Buffer {
  const { tokens, checks, eventCounts } = table.found
  const chosen = choosePostings(table, { events, bytesMax })
  const sizes = chosen.map((index) => postingBytes(eventCounts[index] ?? 0, events))
  const postings = Buffer.alloc(sizes.reduce((sum, size) => sum + size, POSTINGS_HEADER_BYTES))
  /** Where the next position of each token goes. 0: the token has no posting. */
  const cursors = new Int32Array(tokens.length)
  let at = POSTINGS_HEADER_BYTES
  for (const [nth, index] of chosen.entries()) {
    const token = tokens[index] ?? 0
    postings.writeInt32LE(token, at)
    postings.writeInt32LE(checks[index] ?? 0, at + 4)
    postings.writeUInt16LE(eventCounts[index] ?? 0, at + 8)
    cursors[index] = at + POSTING_HEADER_BYTES
    at += sizes[nth] ?? 0
    postings.writeUInt16LE(at - POSTINGS_HEADER_BYTES, postingListOf(token) * 2)
  }
  for (let list = 1; list < LISTS; list += 1) {
    const end = Math.max(postings.readUInt16LE(list * 2), postings.readUInt16LE(list * 2 - 2))
    postings.writeUInt16LE(end, list * 2)
  }
  const { indexes, positions } = table.occurrences
  for (let nth = 0; nth < indexes.length; nth += 1) {
    const index = indexes[nth] ?? 0
    const cursor = cursors[index] ?? 0
    const count = eventCounts[index] ?? 0
    if (cursor === 0 || count === events) continue
    const position = positions[nth] ?? 0
    if (isBitmap(count, events)) {
      const byte = cursor + (position >>> 3)
      postings[byte] = (postings[byte] ?? 0) | (1 << (position & 7))
    } else {
      postings.writeUInt16LE(position, cursor)
      cursors[index] = cursor + 2
    }
  }
  return postings
}

/** The most frequent tokens, in the order of their lists. Sorting all of them would take too long at once. */
function choosePostings(
  table: TokenTable,
  { events, bytesMax }: { events: number; bytesMax: number },
): number[] {
  const { tokens, eventCounts } = table.found
  const tokensByCount = new Int32Array(events + 1)
  for (let index = 0; index < tokens.length; index += 1) {
    const count = eventCounts[index] ?? 0
    tokensByCount[count] = (tokensByCount[count] ?? 0) + 1
  }
  /** How many tokens with each count have a posting. */
  const chosenByCount = new Int32Array(events + 1)
  let left = Math.min(bytesMax, BYTES_MAX) - POSTINGS_HEADER_BYTES
  for (let count = events; count >= EVENTS_MIN && left > 0; count -= 1) {
    const bytes = postingBytes(count, events)
    const chosen = Math.min(tokensByCount[count] ?? 0, Math.floor(left / bytes))
    chosenByCount[count] = chosen
    left -= chosen * bytes
  }
  const chosen: number[] = []
  for (let index = 0; index < tokens.length; index += 1) {
    const count = eventCounts[index] ?? 0
    if ((chosenByCount[count] ?? 0) === 0) continue
    chosenByCount[count] = (chosenByCount[count] ?? 0) - 1
    chosen.push(index)
  }
  return chosen.sort((a, b) => postingListOf(tokens[a] ?? 0) - postingListOf(tokens[b] ?? 0))
}

/** The number of the list that has a token. */
export function postingListOf(token: SearchToken): number {
  return token >>> 26
}

/**
 * Marks the events that have a token, in a list of postings. False if the token has no posting there: then it is
 * not known which events have it.
 */
export function markPosted(
  list: Buffer,
  { token, check }: { token: SearchToken; check: number },
  marks: Uint8Array,
): boolean {
  const events = marks.length
  let at = 0
  while (at < list.length) {
    const count = list.readUInt16LE(at + 8)
    const start = at + POSTING_HEADER_BYTES
    const size = positionBytes(count, events)
    if (list.readInt32LE(at) === token && list.readInt32LE(at + 4) === check) {
      markPositions(list.subarray(start, start + size), count, marks)
      return true
    }
    at = start + size
  }
  return false
}

function markPositions(positions: Buffer, count: number, marks: Uint8Array): void {
  if (count === marks.length) {
    marks.fill(1)
  } else if (isBitmap(count, marks.length)) {
    for (let position = 0; position < marks.length; position += 1) {
      if (((positions[position >>> 3] ?? 0) & (1 << (position & 7))) !== 0) marks[position] = 1
    }
  } else {
    for (let at = 0; at < positions.length; at += 2) marks[positions.readUInt16LE(at)] = 1
  }
}

function postingBytes(count: number, events: number): number {
  return POSTING_HEADER_BYTES + positionBytes(count, events)
}

function positionBytes(count: number, events: number): number {
  if (count === events) return 0
  return isBitmap(count, events) ? Math.ceil(events / 8) : count * 2
}

function isBitmap(count: number, events: number): boolean {
  return count * 2 > Math.ceil(events / 8)
}
