/**
 * `JSON.parse`, except that it never mistakes a key for another one: see `readTokens`, which is as careful, but
 * also refuses what events can't contain. `JSON.parse` reads only texts without escapes: objects with escaped
 * keys would change what it, or a library that calls it, reads later.
 */
export function parseJson(text: string): ReturnType<typeof JSON.parse> {
  return text.includes('\\') ? new KeyByKeyReader(text).read() : JSON.parse(text)
}

/** A number or literal, or what only looks like one, which `JSON.parse` refuses. */
const UNQUOTED = /[-+.\w]+/y
const SPACE = /[ \t\n\r]*/y

class KeyByKeyReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): unknown {
    const value = this.#value()
    if (this.#next() !== '') this.#fail()
    return value
  }

  #value(): unknown {
    const char = this.#next()
    if (char === '{') return this.#object()
    if (char === '[') return this.#array()
    return this.#scalar()
  }

  #object(): Record<string, unknown> {
    const members: Record<string, unknown> = {}
    for (let isMore = this.#enter('}'); isMore; isMore = this.#advance('}')) {
      if (this.#next() !== '"') this.#fail()
      const key = String(this.#scalar())
      this.#take(':')
      setMember(members, key, this.#value())
    }
    return members
  }

  #array(): unknown[] {
    const items: unknown[] = []
    for (let isMore = this.#enter(']'); isMore; isMore = this.#advance(']')) {
      items.push(this.#value())
    }
    return items
  }

  #scalar(): unknown {
    const start = this.#at
    this.#at = this.#text[start] === '"' ? this.#endOfString() : this.#endOfUnquoted()
    return JSON.parse(this.#text.slice(start, this.#at))
  }

  /** A regular expression would overflow the stack in a very long string. */
  #endOfString(): number {
    const { length } = this.#text
    let at = this.#at + 1
    while (at < length && this.#text[at] !== '"') at += this.#text[at] === '\\' ? 2 : 1
    return at + 1
  }

  #endOfUnquoted(): number {
    UNQUOTED.lastIndex = this.#at
    const [token] = UNQUOTED.exec(this.#text) ?? this.#fail()
    return this.#at + token.length
  }

  /** Steps into a container; false if it is empty. */
  #enter(closing: string): boolean {
    this.#at += 1
    if (this.#next() !== closing) return true
    this.#at += 1
    return false
  }

  /** Steps over the comma to the next member or item; false at the end of the container. */
  #advance(closing: string): boolean {
    const isMore = this.#next() !== closing
    this.#take(isMore ? ',' : closing)
    return isMore
  }

  #take(char: string): void {
    if (this.#next() !== char) this.#fail()
    this.#at += 1
  }

  /** The next character that is not whitespace. */
  #next(): string {
    SPACE.lastIndex = this.#at
    SPACE.test(this.#text)
    this.#at = SPACE.lastIndex
    return this.#text.charAt(this.#at)
  }

  #fail(): never {
    throw new SyntaxError(`Unexpected token or end of JSON at position ${this.#at}`)
  }
}

/** Assigning to __proto__ would set the prototype. */
export function setMember(members: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') members[key] = value
  else Object.defineProperty(members, key, { ...ORDINARY, value })
}

const ORDINARY = { configurable: true, enumerable: true, writable: true }
