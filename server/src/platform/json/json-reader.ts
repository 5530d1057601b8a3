import { type JsonResult, jsonPointer } from './json-fault.ts'
import { JsonFaultError, JsonScanner, type JsonSource } from './json-scanner.ts'
import { type JsonMember, sortMembers } from './json-sort.ts'
import { setMember } from './parse-json.ts'

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
 * Reads a text according to RFC 8259 and our limits, and yields every few hundred tokens. Returns the
 * first fault, except that a duplicate key in the canonical member is detected at the end of its object.
 *
 * It builds objects key by key, because `JSON.parse` in V8 13.6 (Node 24) can mistake one key for another:
 * it compares the raw text of a key with the key that earlier objects of this shape had. It reads
 * {"a":1,"\"":2} as {"a":1,"\\":2} once it has parsed the latter, from any caller. A single string has no
 * shape, so `JSON.parse` can decode it safely.
 */
export function* readTokens(
  source: JsonSource,
  options: Partial<JsonReaderOptions> = {},
): Generator<void, JsonResult, void> {
  try {
    return { value: yield* new Reader(source, options).document(), fault: null }
  } catch (error) {
    if (error instanceof JsonFaultError) return { value: null, fault: error.fault }
    throw error
  }
}

/** What a text is read as. */
type Output = 'value' | 'canonical text'

class Reader {
  readonly #scan: JsonScanner
  readonly #options: Partial<JsonReaderOptions>
  #tooManyKeys: JsonFaultError | null = null

  constructor(source: JsonSource, options: Partial<JsonReaderOptions>) {
    this.#scan = new JsonScanner(source)
    this.#options = options
  }

  *document(): Generator<void, unknown, void> {
    this.#scan.begin()
    let value = this.#scalar('value')
    if (value === undefined) value = yield* this.#value('value')
    this.#scan.end()
    if (this.#tooManyKeys) throw this.#tooManyKeys
    return value
  }

  /** Undefined for containers and very long strings: a generator costs more than most scalars. */
  #scalar(output: Output): unknown {
    const scan = this.#scan
    const char = scan.char()
    if (char === '{' || char === '[') return undefined
    if (char === '-' || (char >= '0' && char <= '9')) {
      // RFC 8785 writes a number the same way as `String`.
      return output === 'value' ? scan.number() : String(scan.number())
    }
    const token = char === '"' ? scan.plainString() : scan.literal()
    // JSON.parse copies the string, so that the value doesn't keep the whole text in memory.
    if (token !== null) return output === 'value' ? JSON.parse(token) : token
    const value = scan.string('A string')
    if (value === null) return undefined
    return output === 'value' ? value : JSON.stringify(value)
  }

  #value(output: Output): Generator<void, unknown, void> {
    const char = this.#scan.char()
    if (char === '[') return this.#array(output)
    if (char === '{') return output === 'value' ? this.#object() : this.#objectText()
    return this.#longString(output)
  }

  *#longString(output: Output): Generator<void, string, void> {
    const value = yield* this.#scan.longString('A string')
    if (output === 'value') return value
    yield
    return JSON.stringify(value)
  }

  *#array(output: Output): Generator<void, unknown, void> {
    const items: unknown[] = []
    for (let isMore = this.#scan.enter(']'); isMore; isMore = this.#scan.advance(']')) {
      this.#scan.path.push(items.length)
      let item = this.#scalar(output)
      if (item === undefined) item = yield* this.#value(output)
      items.push(item)
      this.#scan.path.pop()
      if (this.#scan.isStepOver(output === 'value' ? 0 : String(item).length)) yield
    }
    if (output === 'value') return items
    return `[${items.length > TEXTS_PER_JOIN ? yield* joinTexts(items) : items.join(',')}]`
  }

  *#object(): Generator<void, Record<string, unknown>, void> {
    const { canonicalMember, keysMax = Number.POSITIVE_INFINITY } = this.#options
    const members: Record<string, unknown> = {}
    const isOutermost = this.#scan.path.length === 0
    let keys = 0
    for (let isMore = this.#scan.enter('}'); isMore; isMore = this.#scan.advance('}')) {
      const { at } = this.#scan
      this.#scan.expectKey()
      const token = this.#scan.plainString()
      const key =
        token?.slice(1, -1) ?? this.#scan.string('A key') ?? (yield* this.#scan.longString('A key'))
      this.#scan.path.push(key)
      if (Object.hasOwn(members, key)) this.#scan.refuseRepeated(key, at)
      keys += 1
      if (keys > keysMax) this.#noteKeys(keysMax)
      this.#scan.colon()
      const isCanonical = isOutermost && key === canonicalMember && this.#scan.char() === '{'
      let value = isCanonical ? new CanonicalJson(yield* this.#objectText()) : this.#scalar('value')
      if (value === undefined) value = yield* this.#value('value')
      if (keys <= keysMax) setMember(members, key, value)
      this.#scan.path.pop()
      if (this.#scan.isStepOver()) yield
    }
    return members
  }

  *#objectText(): Generator<void, string, void> {
    const members: JsonMember[] = []
    for (let isMore = this.#scan.enter('}'); isMore; isMore = this.#scan.advance('}')) {
      const { at } = this.#scan
      this.#scan.expectKey()
      const token = this.#scan.plainString()
      const key =
        token?.slice(1, -1) ?? this.#scan.string('A key') ?? (yield* this.#scan.longString('A key'))
      this.#scan.path.push(key)
      this.#scan.colon()
      const value = this.#scalar('canonical text') ?? (yield* this.#value('canonical text'))
      this.#scan.path.pop()
      const text = String(value)
      members.push({ key, name: token ?? JSON.stringify(key), text, at })
      if (this.#scan.isStepOver(text.length)) yield
    }
    const texts: string[] = []
    let lastKey: string | null = null
    for (const { key, name, text, at } of yield* sortMembers(members)) {
      if (key === lastKey) {
        this.#scan.path.push(key)
        this.#scan.refuseRepeated(key, at)
      }
      lastKey = key
      texts.push(`${name}:${text}`)
      if (this.#scan.isStepOver(text.length)) yield
    }
    return `{${texts.length > TEXTS_PER_JOIN ? yield* joinTexts(texts) : texts.join(',')}}`
  }

  /** Keeps reading, because a syntax error takes precedence. */
  #noteKeys(keysMax: number): void {
    this.#tooManyKeys ??= new JsonFaultError({
      kind: 'value',
      path: jsonPointer(this.#scan.path.slice(0, -1)),
      offset: 0,
      message: `An object must not have more than ${keysMax} keys here.`,
    })
  }
}

const TEXTS_PER_JOIN = 4_096

/** Joins texts with commas, in parts: a million of them take 50 ms. */
function* joinTexts(texts: readonly unknown[]): Generator<void, string, void> {
  const parts: string[] = []
  for (let start = 0; start < texts.length; start += TEXTS_PER_JOIN) {
    parts.push(texts.slice(start, start + TEXTS_PER_JOIN).join(','))
    yield
  }
  return parts.join(',')
}
