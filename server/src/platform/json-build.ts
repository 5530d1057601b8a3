/**
 * The value of a text that is known to be JSON, read key by key.
 *
 * For texts with escapes, because `JSON.parse` of V8 13.6 (Node 24) can take one key for another:
 * it compares a key as it is written with the key that objects of this shape had before, and so
 * reads {"a":1,"\"":2} as {"a":1,"\\":2} once it has met the latter, whoever sent it. A string by
 * itself has no shape, so single strings are safe to decode with it.
 */
export function buildJson(text: string): unknown {
  return new Builder(text).value()
}

const BLANK = /[ \t\n\r]*/y
const SCALAR = /[^\s,\]}]+/y

class Builder {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  value(): unknown {
    this.#skipBlanks()
    const first = this.#text.charAt(this.#at)
    if (first === '"') return this.#string()
    if (first === '[') return this.#array()
    if (first === '{') return this.#object()
    return JSON.parse(this.#match(SCALAR))
  }

  #array(): unknown[] {
    const items: unknown[] = []
    while (this.#hasNext(']')) items.push(this.value())
    return items
  }

  #object(): Record<string, unknown> {
    const members: Record<string, unknown> = {}
    while (this.#hasNext('}')) {
      this.#skipBlanks()
      const key = this.#string()
      this.#skipBlanks()
      this.#at += 1 // The colon.
      // Defined, not assigned: a key __proto__ is data like any other.
      const value = this.value()
      Object.defineProperty(members, key, {
        value,
        configurable: true,
        enumerable: true,
        writable: true,
      })
    }
    return members
  }

  /** Steps over the opening bracket or a comma; false at the closing bracket, which is taken too. */
  #hasNext(closing: string): boolean {
    this.#skipBlanks()
    if (this.#text.charAt(this.#at) === closing) {
      this.#at += 1
      return false
    }
    this.#at += 1
    this.#skipBlanks()
    // An empty container closes right after it opened.
    if (this.#text.charAt(this.#at) !== closing) return true
    this.#at += 1
    return false
  }

  #string(): string {
    const start = this.#at
    this.#at += 1
    while (this.#text.charAt(this.#at) !== '"') {
      this.#at += this.#text.charAt(this.#at) === '\\' ? 2 : 1
    }
    this.#at += 1
    return JSON.parse(this.#text.slice(start, this.#at))
  }

  #skipBlanks(): void {
    this.#match(BLANK)
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }
}
