import { foldCase } from '../../platform/fold-case.ts'
import { runAtOnce } from '../../platform/scheduling/time-slice.ts'
import { innerText, keyEnd, type MetadataTerm } from './metadata-term.ts'
import { TextUnits } from './text-units.ts'

/*
 * Compares the metadata of events with filters. The text is canonical: it has no whitespace and only one spelling of
 * each key and value. So the characters of a key are compared with those of a path, and nothing is parsed. That also
 * avoids `JSON.parse`, which can mistake one key for another (see `json-reader.ts`).
 */

/** The result, or work that yields about every millisecond or more often and returns it. */
export type Comparison = boolean | Generator<void, boolean, void>

/** Runs a comparison of any size in one piece. */
export function compareAtOnce(comparison: Comparison): boolean {
  return typeof comparison === 'boolean' ? comparison : runAtOnce(comparison)
}

/** Whether both are true. */
export function compareAll(first: Comparison, second: Comparison): Comparison {
  if (typeof first === 'boolean') return first && second
  return second === true ? first : compareBoth(first, second)
}

function* compareBoth(
  first: Generator<void, boolean, void>,
  second: Comparison,
): Generator<void, boolean, void> {
  if (second === false || !(yield* first)) return false
  return second === true ? true : yield* second
}

/** Metadata up to this length is compared in one piece, which takes less than half a millisecond. */
const CHARS_AT_ONCE_MAX = 4_096
/** The distance between two yields. However dense the keys are, it takes less than a millisecond. */
const CHARS_PER_STEP = 8_192

const shortUnits = new TextUnits(CHARS_AT_ONCE_MAX)

/** The canonical metadata of an event. Several filters can compare it. */
export class MetadataText {
  readonly text: string
  #units: Uint16Array | null = null

  constructor(text: string) {
    this.text = text
  }

  get isShort(): boolean {
    return this.text.length <= CHARS_AT_ONCE_MAX
  }

  /** Those of a short text are valid only until the next call for any text. */
  get units(): Uint16Array {
    if (this.isShort) return shortUnits.of(this.text)
    this.#units ??= new TextUnits(this.text.length).of(this.text)
    return this.#units
  }
}

/** Finds events whose metadata has what every term requires. */
export class TermsMatcher {
  readonly #terms: readonly SoughtTerm[]

  constructor(terms: readonly MetadataTerm[]) {
    this.#terms = terms.map(soughtTerm)
  }

  compare(metadata: MetadataText): Comparison {
    const terms = this.#terms
    if (!metadata.isShort) return scanForTerms(metadata, terms)
    return mayHaveTerms(metadata.text, terms) && runAtOnce(scanForTerms(metadata, terms))
  }
}

/** A term as the canonical text spells it. */
type SoughtTerm = {
  path: string
  values: ReadonlySet<string> | null
  /** The length of the longest value. */
  lengthMax: number
  /** Every metadata that fulfills the term contains this, and one of `valueParts` if there are any. */
  keyPart: string
  valueParts: readonly string[]
}

/**
 * Searching a text for a part takes time in proportion to both lengths at worst: a value of 1,000 characters takes up
 * to 70 ms in 256 KiB. So only short texts are searched, for few and short parts.
 */
const PART_LENGTH_MAX = 16
const VALUE_PARTS_MAX = 4

function soughtTerm({ path, values }: MetadataTerm): SoughtTerm {
  const spelled = (values ?? []).map(innerText)
  const parts = spelled.map((value) => value.slice(0, PART_LENGTH_MAX))
  return {
    path: innerText(path),
    values: values && new Set(spelled),
    lengthMax: Math.max(0, ...spelled.map(({ length }) => length)),
    keyPart: keyEnd(path).slice(-PART_LENGTH_MAX),
    valueParts: parts.length <= VALUE_PARTS_MAX ? parts : [],
  }
}

/** Scanning a text costs more than searching it for a part, and most events don't contain it. */
function mayHaveTerms(text: string, terms: readonly SoughtTerm[]): boolean {
  for (const { keyPart, valueParts } of terms) {
    if (!text.includes(keyPart)) return false
    if (valueParts.length > 0 && !valueParts.some((part) => text.includes(part))) return false
  }
  return true
}

/** What the keys above a node have used of a path, if one of them isn't on it. */
const OFF_PATH = Number.MAX_SAFE_INTEGER

/** Visits only nodes on the way to a path, and skips the values of other keys. */
function* scanForTerms(
  metadata: MetadataText,
  terms: readonly SoughtTerm[],
): Generator<void, boolean, void> {
  const { text, units } = metadata
  const { length } = text
  const path = new PathsAbove(terms)
  let isOnPath = true
  let skippedDepth = 0
  let at = 0
  let stepEnd = CHARS_PER_STEP
  while (at < length && path.missing > 0) {
    if (at >= stepEnd) {
      stepEnd = at + CHARS_PER_STEP
      yield
    }
    const unit = units[at]
    if (unit === COMMA) {
      at += 1
    } else if (unit === OPEN_OBJECT || unit === OPEN_ARRAY) {
      if (isOnPath) path.enter(unit === OPEN_ARRAY)
      else skippedDepth += 1
      at += 1
    } else if (unit === CLOSE_OBJECT || unit === CLOSE_ARRAY) {
      if (skippedDepth > 0) {
        skippedDepth -= 1
      } else {
        path.leave()
        // An array that isn't on a path would have been skipped. In an object, the next key decides.
        isOnPath = true
      }
      at += 1
    } else {
      const end = endOfToken(units, at, length)
      const inner = unit === QUOTE ? 1 : 0
      const isKey = inner === 1 && end < length && units[end] === COLON
      if (skippedDepth === 0) {
        if (isKey) isOnPath = path.stepInto(units, at + 1, end - 1)
        else if (isOnPath) path.compareValue(text, at + inner, end - inner)
      }
      at = isKey ? end + 1 : end
    }
  }
  return path.missing === 0
}

/** The terms that no node has fulfilled yet, and how far the keys above the current node follow their paths. */
class PathsAbove {
  missing: number
  readonly #terms: readonly SoughtTerm[]
  readonly #isMissing: boolean[]
  /** How many characters of each path are used: per open container above it and the container itself, then the next value. */
  readonly #used: number[]
  #depth = 0

  constructor(terms: readonly SoughtTerm[]) {
    this.missing = terms.length
    this.#terms = terms
    this.#isMissing = terms.map(() => true)
    this.#used = terms.map(() => 0)
  }

  /** The items of an array have its path. */
  enter(isArray: boolean): void {
    const { length } = this.#terms
    this.#depth += 1
    const next = this.#depth * length
    for (let nth = 0; nth < length; nth += 1) {
      this.#used[next + nth] = isArray ? (this.#used[next - length + nth] ?? OFF_PATH) : OFF_PATH
    }
  }

  leave(): void {
    this.#depth -= 1
  }

  /** Returns whether the value of the key is on the way to a path. */
  stepInto(units: Uint16Array, start: number, end: number): boolean {
    const { length } = this.#terms
    const next = this.#depth * length
    let isOnPath = false
    for (let nth = 0; nth < length; nth += 1) {
      const term = this.#terms[nth]
      if (term === undefined || this.#isMissing[nth] !== true) continue
      const above = this.#used[next - length + nth] ?? OFF_PATH
      const used = usedAfter(term.path, above, { units, start, end })
      this.#used[next + nth] = used
      if (used === OFF_PATH) continue
      isOnPath = true
      // Any value is enough, even an object.
      if (used > term.path.length && term.values === null) this.#drop(nth)
    }
    return isOnPath
  }

  compareValue(text: string, start: number, end: number): void {
    const { length } = this.#terms
    const here = this.#depth * length
    for (let nth = 0; nth < length; nth += 1) {
      const term = this.#terms[nth]
      if (term === undefined || this.#isMissing[nth] !== true) continue
      const used = this.#used[here + nth] ?? OFF_PATH
      if (used === OFF_PATH || used <= term.path.length || end - start > term.lengthMax) continue
      if (term.values?.has(text.slice(start, end)) === true) this.#drop(nth)
    }
  }

  #drop(nth: number): void {
    this.#isMissing[nth] = false
    this.missing -= 1
  }
}

/** More than the length of the path after its last key. */
function usedAfter(
  path: string,
  used: number,
  { units, start, end }: { units: Uint16Array; start: number; end: number },
): number {
  const after = used + end - start
  if (after > path.length) return OFF_PATH
  if (after < path.length && path.charCodeAt(after) !== DOT) return OFF_PATH
  for (let at = start; at < end; at += 1) {
    if (units[at] !== path.charCodeAt(used + at - start)) return OFF_PATH
  }
  return after + 1
}

/** Finds events with a value in their metadata that equals the text. The letters A to Z match either case. */
export class ValueMatcher {
  readonly #value: string

  constructor(text: string) {
    this.#value = innerText(foldCase(text))
  }

  compare(metadata: MetadataText): Comparison {
    const scan = scanForValue(metadata, this.#value)
    return metadata.isShort ? runAtOnce(scan) : scan
  }
}

function* scanForValue(metadata: MetadataText, value: string): Generator<void, boolean, void> {
  const { units } = metadata
  const { length } = metadata.text
  let at = 0
  let stepEnd = CHARS_PER_STEP
  while (at < length) {
    if (at >= stepEnd) {
      stepEnd = at + CHARS_PER_STEP
      yield
    }
    const unit = units[at]
    if (unit !== QUOTE && isPunctuation(unit)) {
      at += 1
      continue
    }
    const end = endOfToken(units, at, length)
    const inner = unit === QUOTE ? 1 : 0
    const isKey = inner === 1 && end < length && units[end] === COLON
    const isAsLong = end - at - 2 * inner === value.length
    if (isAsLong && !isKey && isFolded(units, at + inner, value)) return true
    at = end
  }
  return false
}

/** Whether the text at a position is the value, which is in lower case. */
function isFolded(units: Uint16Array, start: number, value: string): boolean {
  for (let at = 0; at < value.length; at += 1) {
    const unit = units[start + at] ?? 0
    const folded = unit >= UPPER_A && unit <= UPPER_Z ? unit + 32 : unit
    if (folded !== value.charCodeAt(at)) return false
  }
  return true
}

/** The position after a string, a number or a literal. */
function endOfToken(units: Uint16Array, start: number, length: number): number {
  let at = start + 1
  if (units[start] !== QUOTE) {
    while (at < length && !isPunctuation(units[at])) at += 1
    return at
  }
  while (at < length && units[at] !== QUOTE) at += units[at] === BACKSLASH ? 2 : 1
  return Math.min(at + 1, length)
}

function isPunctuation(unit: number | undefined): boolean {
  return (
    unit === COMMA ||
    unit === COLON ||
    unit === OPEN_OBJECT ||
    unit === CLOSE_OBJECT ||
    unit === OPEN_ARRAY ||
    unit === CLOSE_ARRAY
  )
}

const QUOTE = 0x22
const COMMA = 0x2c
const DOT = 0x2e
const COLON = 0x3a
const UPPER_A = 0x41
const UPPER_Z = 0x5a
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
