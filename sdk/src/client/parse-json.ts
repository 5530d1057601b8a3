/**
 * `JSON.parse`, except that every key is read correctly. V8 13.6 (Node 24, Chrome 136) can mistake a key with
 * escapes for one that it has parsed before: it reads {"a":1,"x\"":2} as {"a":1,"x\\":2} if any earlier text
 * contained {"a":1,"x\\":1}. A single value has no keys, so `JSON.parse` reads it correctly.
 */
export function parseJson(text: string) {
  // It checks the syntax correctly, so the functions below don't.
  const value = JSON.parse(text)
  return hasEscapedKey(text) ? readKeyByKey(text) : value
}

function hasEscapedKey(text: string): boolean {
  const colon = /\s*:/y
  for (let at = text.indexOf('\\'); at !== -1; at = text.indexOf('\\', at)) {
    at = endOfString(text, at)
    colon.lastIndex = at
    if (colon.test(text)) return true
  }
  return false
}

/** A loop, because valid JSON can be nested more deeply than a recursion could follow. */
function readKeyByKey(text: string): unknown {
  const outer: unknown[][] = []
  /** The innermost array, or the keys and values of the innermost object. */
  let items: unknown[] = []
  for (const token of tokensOf(text)) {
    if (token === '{' || token === '[') {
      outer.push(items)
      items = []
    } else if (token === '}' || token === ']') {
      const value = token === '}' ? toObject(items) : items
      items = outer.pop() ?? []
      items.push(value)
    } else {
      items.push(JSON.parse(token))
    }
  }
  return items[0]
}

/** The brackets and the scalar values. Nothing else is needed to read a valid text. */
function* tokensOf(text: string): Generator<string, void, undefined> {
  const start = /["{}[\]]|[-+.\w]+/g
  for (let match = start.exec(text); match !== null; match = start.exec(text)) {
    if (match[0] === '"') start.lastIndex = endOfString(text, start.lastIndex)
    yield text.slice(match.index, start.lastIndex)
  }
}

/** The end of the string around `at`. A regular expression would overflow the stack in a very long one. */
function endOfString(text: string, at: number): number {
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

/** An assignment to `__proto__` would set the prototype, but `fromEntries` creates a property. */
function toObject(keysAndValues: readonly unknown[]): unknown {
  const entries: [string, unknown][] = []
  for (let nth = 0; nth < keysAndValues.length; nth += 2) {
    entries.push([String(keysAndValues[nth]), keysAndValues[nth + 1]])
  }
  return Object.fromEntries(entries)
}
