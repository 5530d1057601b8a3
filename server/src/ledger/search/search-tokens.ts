import type { EventFilter } from '../filter/event-filter.ts'
import { canonicalString } from '../canonical.ts'
import { foldCase } from '../../platform/fold-case.ts'
import { innerText, type MetadataTerm } from './metadata-term.ts'
import { TextUnits } from './text-units.ts'
import type { SearchToken, TokenTable } from './token-table.ts'

/** The fields of an event that its tokens are made of. */
export type TokenizedEvent = {
  traceId: string | null
  actor: string | null
  metadata: string | null
}

/** Adds the tokens of the events of a block to a table, in steps of less than a millisecond. */
export function* addTokens(
  events: readonly TokenizedEvent[],
  table: TokenTable,
): Generator<void, void, void> {
  const { seed } = table
  const units = new TextUnits()
  const traces = new LastText(TRACE_SEED, seed)
  const roles = new LastText(ROLE_SEED, seed)
  let chars = 0
  let position = 0
  for (const { traceId, actor, metadata } of events) {
    chars += CHARS_PER_EVENT + (metadata?.length ?? 0)
    if (chars > CHARS_PER_STEP) {
      chars = 0
      yield
    }
    table.startEvent(position)
    position += 1
    if (traceId !== null) traces.addTo(table, traceId)
    const roleAt = actor?.lastIndexOf(ROLE_KEY) ?? -1
    // The keys of an actor are sorted, so its role comes last.
    if (actor !== null && roleAt !== -1) {
      roles.addTo(table, actor.slice(roleAt + ROLE_KEY.length, -1))
    }
    if (metadata === null) continue
    const scan = startScan(units.of(metadata), metadata.length, seed)
    while (!scanTokens(scan, table)) yield
  }
}

const ROLE_KEY = '"role":'
/** What an event costs in addition to its metadata. */
const CHARS_PER_EVENT = 100

/** Adds whole texts. Many events have the same as the one before, which is not hashed again. */
class LastText {
  readonly #kind: number
  readonly #seed: number
  #text: string | null = null
  #token: CheckedToken = { token: 0, check: 0 }

  constructor(kind: number, seed: number) {
    this.#kind = kind
    this.#seed = seed
  }

  addTo(table: TokenTable, text: string): void {
    if (text !== this.#text) {
      this.#text = text
      this.#token = wholeToken(this.#kind, text, this.#seed)
    }
    table.add(this.#token.token, this.#token.check)
  }
}

/** How far a scan of a text is. */
type Scan = {
  units: Uint16Array
  length: number
  seed: number
  at: number
  isKeyNext: boolean
  /** The hashes of the path of the current value. */
  path: number
  pathCheck: number
  /** The hashes of the paths of the open objects and arrays inside the metadata. */
  outerPaths: number[]
  outerChecks: number[]
  areObjects: boolean[]
}

function startScan(units: Uint16Array, length: number, seed: number): Scan {
  const open = { outerPaths: [], outerChecks: [], areObjects: [] }
  return { units, length, seed, at: 1, isKeyNext: true, path: 0, pathCheck: 0, ...open }
}

/** The distance between two steps. However dense the values are, one takes less than a millisecond. */
const CHARS_PER_STEP = 8_192

/**
 * Scans the canonical text, which has no whitespace and only one spelling of each key and value, and hashes these
 * spellings. It takes a third of the time of parsing the text and hashing the values. Returns whether this was the
 * last step.
 */
function scanTokens(scan: Scan, table: TokenTable): boolean {
  const { units, length, seed, outerPaths, outerChecks, areObjects } = scan
  const stepEnd = Math.min(length, scan.at + CHARS_PER_STEP)
  let { at, isKeyNext, path, pathCheck } = scan
  while (at < stepEnd) {
    const unit = units[at] ?? 0
    if (isKeyNext && unit === QUOTE) {
      const isInner = outerPaths.length > 0
      const end = endOfToken(units, at)
      path = isInner ? Math.imul((outerPaths.at(-1) ?? 0) ^ DOT, FNV_PRIME) : PATH_SEED
      pathCheck = isInner
        ? Math.imul((outerChecks.at(-1) ?? 0) ^ DOT, CHECK_PRIME)
        : PATH_SEED ^ seed
      for (at += 1; at < end - 1; at += 1) {
        path = Math.imul(path ^ (units[at] ?? 0), FNV_PRIME)
        pathCheck = Math.imul(pathCheck ^ (units[at] ?? 0), CHECK_PRIME)
      }
      table.add(finish(path), pathCheck)
      isKeyNext = false
      // After the colon.
      at = end + 1
    } else if (unit === COMMA) {
      isKeyNext = areObjects.at(-1) ?? true
      if (!isKeyNext) {
        path = outerPaths.at(-1) ?? 0
        pathCheck = outerChecks.at(-1) ?? 0
      }
      at += 1
    } else if (unit === OPEN_OBJECT || unit === OPEN_ARRAY) {
      outerPaths.push(path)
      outerChecks.push(pathCheck)
      areObjects.push(unit === OPEN_OBJECT)
      isKeyNext = unit === OPEN_OBJECT
      at += 1
    } else if (unit === CLOSE_OBJECT || unit === CLOSE_ARRAY) {
      outerPaths.pop()
      outerChecks.pop()
      areObjects.pop()
      isKeyNext = false
      at += 1
    } else {
      const end = endOfToken(units, at)
      const inner = unit === QUOTE ? 1 : 0
      addValue(table, { units, start: at + inner, end: end - inner, path, pathCheck })
      at = end
    }
  }
  scan.at = at
  scan.isKeyNext = isKeyNext
  scan.path = path
  scan.pathCheck = pathCheck
  return at >= length
}

function addValue(
  table: TokenTable,
  {
    units,
    start,
    end,
    path,
    pathCheck,
  }: { units: Uint16Array; start: number; end: number; path: number; pathCheck: number },
): void {
  let value = VALUE_SEED
  let check = VALUE_SEED ^ table.seed
  let hasUpper = false
  for (let at = start; at < end; at += 1) {
    const unit = units[at] ?? 0
    hasUpper ||= unit >= UPPER_A && unit <= UPPER_Z
    value = Math.imul(value ^ unit, FNV_PRIME)
    check = Math.imul(check ^ unit, CHECK_PRIME)
  }
  table.add(finish(hashAtPath(path, value)), hashAtPath(pathCheck, check))
  if (hasUpper) {
    value = VALUE_SEED
    check = VALUE_SEED ^ table.seed
    for (let at = start; at < end; at += 1) {
      const unit = units[at] ?? 0
      const folded = unit >= UPPER_A && unit <= UPPER_Z ? unit + 32 : unit
      value = Math.imul(value ^ folded, FNV_PRIME)
      check = Math.imul(check ^ folded, CHECK_PRIME)
    }
  }
  table.add(finish(value), check)
}

const UPPER_A = 0x41
const UPPER_Z = 0x5a
const QUOTE = 0x22
const COMMA = 0x2c
const DOT = 0x2e
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** The position after a string, a number or a literal. */
function endOfToken(units: Uint16Array, start: number): number {
  let at = start
  if (units[start] === QUOTE) {
    at += 1
    for (let unit = units[at]; unit !== QUOTE; unit = units[at]) {
      at += unit === BACKSLASH ? 2 : 1
    }
    return at + 1
  }
  for (;;) {
    const unit = units[at]
    if (unit === COMMA || unit === CLOSE_OBJECT || unit === CLOSE_ARRAY) return at
    at += 1
  }
}

/** A token, and its check in a block with the given seed. */
type CheckedToken = { token: SearchToken; check: number }

/**
 * What a filter requires of an event, as far as tokens can tell: one token of each list. Empty if tokens can't
 * rule out any event.
 */
export function requiredTokens(filter: EventFilter): SearchToken[][] {
  return requiredChecks(filter, 0).map((list) => list.map(({ token }) => token))
}

/** The same tokens in the same order, with their checks in a block with this seed. */
export function requiredChecks(filter: EventFilter, seed: number): CheckedToken[][] {
  const { traceId, actorRole, metadata, text, textIn } = filter
  return [
    ...(traceId === null ? [] : [[wholeToken(TRACE_SEED, traceId, seed)]]),
    ...(actorRole === null ? [] : [[wholeToken(ROLE_SEED, canonicalString(actorRole), seed)]]),
    ...(metadata ?? []).map((term) => termTokens(term, seed)),
    ...(text === null || textIn !== 'metadata'
      ? []
      : [[wholeToken(VALUE_SEED, foldCase(innerText(text)), seed)]]),
  ]
}

function wholeToken(kind: number, text: string, seed: number): CheckedToken {
  const { hash, check } = hashText(text, kind, kind ^ seed)
  return { token: finish(hash), check }
}

function termTokens({ path, values }: MetadataTerm, seed: number): CheckedToken[] {
  const at = hashText(innerText(path), PATH_SEED, PATH_SEED ^ seed)
  if (values === null) return [{ token: finish(at.hash), check: at.check }]
  return values.map((value) => {
    const { hash, check } = hashText(innerText(value), VALUE_SEED, VALUE_SEED ^ seed)
    return { token: finish(hashAtPath(at.hash, hash)), check: hashAtPath(at.check, check) }
  })
}

/** FNV-1a, started differently for each kind of token. */
const PATH_SEED = 0x811c9dc5 | 0
const VALUE_SEED = 0x4f1bbcdc
const TRACE_SEED = 0x2f0b4a27
const ROLE_SEED = 0x1b56c4e9
const FNV_PRIME = 0x01000193
/** A check is the same with another factor and a random start. */
const CHECK_PRIME = 0x85ebca6b

function hashText(
  text: string,
  hashStart: number,
  checkStart: number,
): { hash: number; check: number } {
  let hash = hashStart
  let check = checkStart
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    hash = Math.imul(hash ^ unit, FNV_PRIME)
    check = Math.imul(check ^ unit, CHECK_PRIME)
  }
  return { hash, check }
}

/** The hash of a value at a path. */
function hashAtPath(path: number, value: number): number {
  return Math.imul(path ^ (value >>> 15), JOIN_PRIME) ^ value
}

const JOIN_PRIME = 0x9e3779b1

/** MurmurHash3's last step. It spreads similar texts, which FNV-1a doesn't do well. */
function finish(state: number): SearchToken {
  let hash = state ^ (state >>> 16)
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  hash = Math.imul(hash, 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
