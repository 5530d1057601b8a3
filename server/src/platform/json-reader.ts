import { jsonPointer, StrictJsonError } from './json-fault.ts'
import { JsonScanner, KEY, STRING } from './json-scanner.ts'
import { type JsonMember, sortMembers } from './json-sort.ts'

/** The RFC 8785 canonical text of an object that is too large to become a value. */
export class CanonicalJson {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type JsonReaderOptions = {
  /**
   * The member of the outermost object that can have any size. It is read as canonical text instead of a
   * JavaScript object: listing half a million keys would block the thread for 200 ms.
   */
  canonicalMember: string
  /** The limit for all other objects. It is higher than in any of our schemas. */
  keysMax: number
}

/**
 * Parses a text according to RFC 8259 and our limits, and yields every few hundred tokens. Throws a
 * StrictJsonError at the first error, except that a duplicate key in the canonical member is detected
 * at the end of its object.
 *
 * This is the slow reader behind `parseStrictJson`, for suspect and for large texts. It builds objects
 * key by key, because `JSON.parse` in V8 13.6 (Node 24) can mistake one key for another: it compares
 * the raw text of a key with the key that earlier objects of this shape had. It reads {"a":1,"\"":2} as
 * {"a":1,"\\":2} once it has parsed the latter, from any caller. A single string has no shape, so
 * `JSON.parse` can decode it safely.
 */
export function readJson(
  text: string,
  options: Partial<JsonReaderOptions> = {},
): Generator<void, unknown, void> {
  return new Reader(text, options).document()
}

class Reader {
  readonly #scan: JsonScanner
  readonly #options: Partial<JsonReaderOptions>
  #tooManyKeys: StrictJsonError | null = null

  constructor(text: string, options: Partial<JsonReaderOptions>) {
    this.#scan = new JsonScanner(text)
    this.#options = options
  }

  *document(): Generator<void, unknown, void> {
    this.#scan.begin()
    const value = this.#isLarge() ? yield* this.#large() : this.#scan.scalar()
    this.#scan.end()
    if (this.#tooManyKeys) throw this.#tooManyKeys
    return value
  }

  /** Whether the next value needs a generator, which costs more than parsing most scalars. */
  #isLarge(): boolean {
    const char = this.#scan.char()
    return char === '{' || char === '[' || (char === '"' && this.#scan.isLongString())
  }

  *#large(): Generator<void, unknown, void> {
    const char = this.#scan.char()
    if (char === '{') return yield* this.#object()
    if (char === '[') return yield* this.#array()
    return (yield* this.#scan.longString(STRING)).value
  }

  *#object(): Generator<void, Record<string, unknown>, void> {
    const { canonicalMember, keysMax = Number.POSITIVE_INFINITY } = this.#options
    const members: Record<string, unknown> = {}
    const isOutermost = this.#scan.path.length === 0
    let keys = 0
    for (let isMore = this.#scan.enter('}'); isMore; isMore = this.#scan.advance('}')) {
      const keyAt = this.#scan.at
      this.#scan.expectKey()
      const { value: key } = this.#scan.isLongString()
        ? yield* this.#scan.longString(KEY)
        : this.#scan.string(KEY)
      this.#scan.path.push(key)
      if (Object.hasOwn(members, key)) this.#scan.refuseRepeated(key, keyAt)
      keys += 1
      if (keys > keysMax) this.#noteKeys(keysMax)
      this.#scan.colon()
      const isCanonical = isOutermost && key === canonicalMember && this.#scan.char() === '{'
      const value = isCanonical
        ? new CanonicalJson(yield* this.#canonicalObject())
        : this.#isLarge()
          ? yield* this.#large()
          : this.#scan.scalar()
      if (keys <= keysMax) define(members, key, value)
      this.#scan.path.pop()
      if (this.#scan.isStepOver()) yield
    }
    return members
  }

  *#array(): Generator<void, unknown[], void> {
    const items: unknown[] = []
    for (let isMore = this.#scan.enter(']'); isMore; isMore = this.#scan.advance(']')) {
      this.#scan.path.push(items.length)
      items.push(this.#isLarge() ? yield* this.#large() : this.#scan.scalar())
      this.#scan.path.pop()
      if (this.#scan.isStepOver()) yield
    }
    return items
  }

  *#canonicalLarge(): Generator<void, string, void> {
    const char = this.#scan.char()
    if (char === '{') return yield* this.#canonicalObject()
    if (char === '[') return yield* this.#canonicalArray()
    return (yield* this.#scan.longString(STRING)).canonical
  }

  *#canonicalObject(): Generator<void, string, void> {
    const members: JsonMember[] = []
    for (let isMore = this.#scan.enter('}'); isMore; isMore = this.#scan.advance('}')) {
      const at = this.#scan.at
      this.#scan.expectKey()
      const { value: key, canonical: name } = this.#scan.isLongString()
        ? yield* this.#scan.longString(KEY)
        : this.#scan.string(KEY)
      this.#scan.path.push(key)
      this.#scan.colon()
      const text = this.#isLarge() ? yield* this.#canonicalLarge() : this.#scan.canonicalScalar()
      this.#scan.path.pop()
      members.push({ key, name, text, at })
      if (this.#scan.isStepOver()) yield
    }
    const parts = new FlatText()
    let last: JsonMember | null = null
    for (const member of yield* sortMembers(members)) {
      if (member.key === last?.key) {
        this.#scan.path.push(member.key)
        this.#scan.refuseRepeated(member.key, member.at)
      }
      parts.add(`${last === null ? '{' : ','}${member.name}:${member.text}`)
      last = member
      if (this.#scan.isStepOver(member.text.length)) yield
    }
    parts.add(last === null ? '{}' : '}')
    return parts.text()
  }

  *#canonicalArray(): Generator<void, string, void> {
    const parts = new FlatText()
    parts.add('[')
    let index = 0
    for (let isMore = this.#scan.enter(']'); isMore; isMore = this.#scan.advance(']')) {
      this.#scan.path.push(index)
      if (index > 0) parts.add(',')
      const text = this.#isLarge() ? yield* this.#canonicalLarge() : this.#scan.canonicalScalar()
      parts.add(text)
      this.#scan.path.pop()
      index += 1
      if (this.#scan.isStepOver(text.length)) yield
    }
    parts.add(']')
    return parts.text()
  }

  /** Keeps reading, because a syntax error takes precedence. */
  #noteKeys(keysMax: number): void {
    this.#tooManyKeys ??= new StrictJsonError({
      kind: 'value',
      path: jsonPointer(this.#scan.path.slice(0, -1)),
      offset: 0,
      message: `An object must not have more than ${keysMax} keys here.`,
    })
  }
}

/** Defines instead of assigning, so that the key __proto__ is ordinary data. */
function define(members: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(members, key, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  })
}

const PIECES_PER_JOIN = 4_096

/**
 * Builds a flat string from many pieces. Concatenation would build a tree, and flattening a tree of a
 * million pieces blocks the thread for 50 ms.
 */
class FlatText {
  readonly #joined: string[] = []
  #pieces: string[] = []

  add(piece: string): void {
    this.#pieces.push(piece)
    if (this.#pieces.length < PIECES_PER_JOIN) return
    this.#joined.push(this.#pieces.join(''))
    this.#pieces = []
  }

  text(): string {
    const last = this.#pieces.join('')
    return this.#joined.length === 0 ? last : [...this.#joined, last].join('')
  }
}
