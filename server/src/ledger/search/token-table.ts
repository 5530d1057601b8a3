/**
 * A token stands for something that a search can require of an event: a metadata value, one at a path, a path,
 * an actor's role or a trace id. It is a hash, a signed integer of 32 bits, which V8 stores without an object.
 * Two texts can have the same token, so a token can only tell which events don't match.
 */
export type SearchToken = number

const TOKENS_FIRST = 16_384
const OCCURRENCES_FIRST = 32_768
const NONE = -1

/**
 * The distinct tokens of a block, in which slices they occur, and at which events.
 *
 * A token has a check, a second hash that starts with the seed of the block. It also chooses the place in the
 * table, so that no caller can send tokens that share one.
 */
export class TokenTable {
  readonly sliceEvents: number
  seed = 0
  size = 0
  pairCount = 0
  occurrenceCount = 0
  #position = 0
  #slice = 0
  #sliceStart = 0
  #shift = 32 - Math.log2(TOKENS_FIRST * 2)
  /** The index of a token plus one, or 0. */
  #places = new Int32Array(TOKENS_FIRST * 2)
  #tokens = new Int32Array(TOKENS_FIRST)
  #checks = new Int32Array(TOKENS_FIRST)
  /** The last event that has the token. */
  #lasts = new Int32Array(TOKENS_FIRST)
  #sliceCounts = new Int32Array(TOKENS_FIRST)
  #eventCounts = new Int32Array(TOKENS_FIRST)
  #pairTokens = new Int32Array(TOKENS_FIRST)
  #pairSlices = new Uint8Array(TOKENS_FIRST)
  #occurringTokens = new Int32Array(OCCURRENCES_FIRST)
  #occurringAt = new Uint16Array(OCCURRENCES_FIRST)

  constructor({ sliceEvents }: { sliceEvents: number }) {
    this.sliceEvents = sliceEvents
  }

  /** Removes all tokens. Reusing a table costs less than collecting it as garbage. */
  startBlock(seed: number): void {
    this.seed = seed
    this.#places.fill(0)
    this.size = 0
    this.pairCount = 0
    this.occurrenceCount = 0
  }

  /** The tokens that follow belong to the event at this position of the block. */
  startEvent(position: number): void {
    this.#position = position
    this.#slice = Math.floor(position / this.sliceEvents)
    this.#sliceStart = this.#slice * this.sliceEvents
  }

  /** Adds a token of the current event. */
  add(token: SearchToken, check: number): void {
    const index = this.#indexOf(token, check)
    const last = this.#lasts[index] ?? NONE
    const position = this.#position
    if (last === position) return
    this.#lasts[index] = position
    if (last < this.#sliceStart) {
      if (this.pairCount === this.#pairTokens.length) this.#growPairs()
      this.#pairTokens[this.pairCount] = index
      this.#pairSlices[this.pairCount] = this.#slice
      this.pairCount += 1
      this.#sliceCounts[index] = (this.#sliceCounts[index] ?? 0) + 1
    }
    if (this.occurrenceCount === this.#occurringAt.length) this.#growOccurrences()
    this.#occurringTokens[this.occurrenceCount] = index
    this.#occurringAt[this.occurrenceCount] = position
    this.occurrenceCount += 1
    this.#eventCounts[index] = (this.#eventCounts[index] ?? 0) + 1
  }

  /** All tokens, and for each its check and in how many slices and events it is. */
  get found(): {
    tokens: Int32Array
    checks: Int32Array
    sliceCounts: Int32Array
    eventCounts: Int32Array
  } {
    return {
      tokens: this.#tokens.subarray(0, this.size),
      checks: this.#checks.subarray(0, this.size),
      sliceCounts: this.#sliceCounts.subarray(0, this.size),
      eventCounts: this.#eventCounts.subarray(0, this.size),
    }
  }

  /** All pairs of a token, as its index in `found`, and a slice. */
  get pairs(): { indexes: Int32Array; slices: Uint8Array } {
    return {
      indexes: this.#pairTokens.subarray(0, this.pairCount),
      slices: this.#pairSlices.subarray(0, this.pairCount),
    }
  }

  /** All pairs of a token and an event, in the order of the events. */
  get occurrences(): { indexes: Int32Array; positions: Uint16Array } {
    return {
      indexes: this.#occurringTokens.subarray(0, this.occurrenceCount),
      positions: this.#occurringAt.subarray(0, this.occurrenceCount),
    }
  }

  #indexOf(token: SearchToken, check: number): number {
    const mask = this.#places.length - 1
    let place = Math.imul(check, MIX) >>> this.#shift
    for (;;) {
      const found = (this.#places[place] ?? 0) - 1
      if (found === NONE) break
      if (this.#checks[found] === check && this.#tokens[found] === token) return found
      place = (place + 1) & mask
    }
    if (this.size === this.#tokens.length) {
      this.#growTokens()
      return this.#indexOf(token, check)
    }
    const index = this.size
    this.size += 1
    this.#places[place] = index + 1
    this.#tokens[index] = token
    this.#checks[index] = check
    this.#lasts[index] = NONE
    this.#sliceCounts[index] = 0
    this.#eventCounts[index] = 0
    return index
  }

  #growTokens(): void {
    const capacity = this.#tokens.length * 2
    this.#tokens = copyInto(this.#tokens, new Int32Array(capacity))
    this.#checks = copyInto(this.#checks, new Int32Array(capacity))
    this.#lasts = copyInto(this.#lasts, new Int32Array(capacity))
    this.#sliceCounts = copyInto(this.#sliceCounts, new Int32Array(capacity))
    this.#eventCounts = copyInto(this.#eventCounts, new Int32Array(capacity))
    this.#places = new Int32Array(capacity * 2)
    this.#shift -= 1
    const mask = this.#places.length - 1
    for (let index = 0; index < this.size; index += 1) {
      let place = Math.imul(this.#checks[index] ?? 0, MIX) >>> this.#shift
      while (this.#places[place] !== 0) place = (place + 1) & mask
      this.#places[place] = index + 1
    }
  }

  #growPairs(): void {
    const capacity = this.#pairTokens.length * 2
    this.#pairTokens = copyInto(this.#pairTokens, new Int32Array(capacity))
    this.#pairSlices = copyInto(this.#pairSlices, new Uint8Array(capacity))
  }

  #growOccurrences(): void {
    const capacity = this.#occurringAt.length * 2
    this.#occurringTokens = copyInto(this.#occurringTokens, new Int32Array(capacity))
    this.#occurringAt = copyInto(this.#occurringAt, new Uint16Array(capacity))
  }
}

/** Its highest bits depend on all bits of a check. */
const MIX = 0x9e3779b1

function copyInto<T extends { set: (from: T) => void }>(from: T, to: T): T {
  to.set(from)
  return to
}
