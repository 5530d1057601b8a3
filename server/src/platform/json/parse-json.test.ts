import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import { parseJson } from './parse-json.ts'

/** Few different characters, so that the text of many keys starts like another key. */
const anyKey = fc.string({
  unit: fc.constantFrom('"', '\\', '/', '\n', 'a', 'n', '1', '\ud800'),
  maxLength: 3,
})
const anyKeys = fc.oneof({ weight: 20, arbitrary: anyKey }, fc.constant('__proto__'))
const anyObject = fc.dictionary(anyKeys, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 })
const anySpace = fc.constantFrom('', ' ', '\r\n\t')

/** Writes a value as JSON. What needs no escape has one if `isEscaped` says so. */
function write(value: unknown, { isEscaped, space }: { isEscaped: () => boolean; space: string }) {
  const writeText = (text: string): string => {
    const units = Array.from({ length: text.length }, (_, nth) => {
      const code = text.charCodeAt(nth)
      const isPlain = code >= 0x20 && code < 0x7f && text[nth] !== '"' && text[nth] !== '\\'
      if (isPlain && !isEscaped()) return text[nth]
      return isPlain || code >= 0x7f
        ? `\\u${code.toString(16).padStart(4, '0')}`
        : JSON.stringify(text[nth]).slice(1, -1)
    })
    return `"${units.join('')}"`
  }
  const writeValue = (inner: unknown): string => {
    if (typeof inner === 'string') return writeText(inner)
    if (typeof inner !== 'object' || inner === null) return JSON.stringify(inner)
    const parts = Array.isArray(inner)
      ? inner.map(writeValue)
      : Object.entries(inner).map(([key, item]) => `${writeText(key)}${space}:${writeValue(item)}`)
    const [open, close] = Array.isArray(inner) ? '[]' : '{}'
    return `${space}${open}${space}${parts.join(`${space},`)}${space}${close}${space}`
  }
  return writeValue(value)
}

test('reads every key as it is written, whatever was parsed before', () => {
  fc.assert(
    fc.property(anyObject, fc.infiniteStream(fc.boolean()), anySpace, (object, booleans, space) => {
      const text = write([object, object], {
        isEscaped: () => booleans.next().value === true,
        space,
      })
      // Other code of this process reads it, such as a library.
      JSON.parse(text)
      const expected = JSON.stringify(object)
      assert.equal(JSON.stringify(parseJson(text)), `[${expected},${expected}]`)
    }),
    { numRuns: rounds(300, 20_000) },
  )
})

test('reads strings of any length', () => {
  const value = { text: '\n'.repeat(4_000_000) }
  assert.equal(parseJson(JSON.stringify(value)).text.length, value.text.length)
})

test('reads a key that starts like one that was parsed before', () => {
  for (const [before, after, expected] of [
    ['{"a":1,"x\\\\":1}', '{"a":1,"x\\"":2}', { a: 1, 'x"': 2 }],
    ['{"a":1,"\\\\/":1}', '{"a":1,"\\/x":2}', { a: 1, '/x': 2 }],
    ['{"b":1,"\\\\u0061":1}', '{"b":1,"\\u0061bcdef":2}', { b: 1, abcdef: 2 }],
  ] as const) {
    JSON.parse(before)
    assert.deepEqual(parseJson(after), expected)
  }
})

test('refuses exactly the texts that JSON.parse refuses', () => {
  const change = fc.record({
    at: fc.nat(),
    drop: fc.nat({ max: 2 }),
    insert: fc.constantFrom('', '"', '\\', ',', ':', '{', '}', '[', ']', '0', '-', '\n', '\ufeff'),
  })
  fc.assert(
    fc.property(anyObject, change, (object, { at, drop, insert }) => {
      const text = JSON.stringify({
        'an "escaped" key': 1.5e21,
        object,
        list: [true, null, object],
      })
      const start = at % text.length
      const changed = text.slice(0, start) + insert + text.slice(start + drop)
      assert.equal(isRefused(parseJson, changed), isRefused(JSON.parse, changed), changed)
    }),
    { numRuns: rounds(700, 20_000) },
  )
})

function isRefused(parse: (text: string) => unknown, text: string): boolean {
  try {
    parse(text)
    return false
  } catch (error) {
    assert(error instanceof SyntaxError)
    return true
  }
}

test('treats __proto__, repeated keys and all numbers like JSON.parse', () => {
  const text =
    '{"\\"":0,"__proto__":{"a":1},"b":1,"c":2,"b":[3],"2":-0,"1":12345678901234567890,"n":"\\u0000\\ud800"}'
  const value = parseJson(text)
  assert.deepEqual(value, JSON.parse(text))
  assert(Object.hasOwn(value, '__proto__') && !('a' in value))
  assert.deepEqual(Object.keys(value), ['1', '2', '"', '__proto__', 'b', 'c', 'n'])
})
