import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { parseJson } from './parse-json.ts'

test('a key is never mistaken for one of an earlier text', () => {
  const texts = [String.raw`{"a":1,"x\\":1}`, String.raw`{"a":1,"x\"":2}`]
  assert.deepEqual(
    texts.map((text) => parseJson(text)),
    [
      { a: 1, 'x\\': 1 },
      { a: 1, 'x"': 2 },
    ],
  )
  assert.deepEqual(parseJson(`[${texts.join()}]`), texts.map(parseJson))
})

/** Keys that look alike once they are escaped. */
const key = fc.oneof(
  fc.string({ unit: fc.constantFrom('\\', '"', '/', '\n', 'n', 'x', 'é', '🙂'), maxLength: 3 }),
  fc.constantFrom('__proto__', '7', 'constructor', '\ud800', '{"', '":', '],'),
)
const { json } = fc.letrec<{ json: unknown }>((self) => ({
  json: fc.oneof(
    { depthSize: 'small' },
    fc.oneof(key, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(null)),
    fc.array(self('json'), { maxLength: 4 }),
    fc
      .array(fc.tuple(key, self('json')), { maxLength: 5 })
      .map((entries) => Object.fromEntries(entries)),
  ),
}))

test('every value is read back unchanged, whatever was read before', () => {
  fc.assert(
    fc.property(json, fc.constantFrom('', ' ', '\n\t'), (value, space) => {
      const text = JSON.stringify(value)
      assert.equal(JSON.stringify(parseJson(text)), text)
      const escaped = JSON.stringify(value, null, space).replaceAll(
        /(?<!\\)x/g,
        () => String.raw`\u0078`,
      )
      assert.equal(JSON.stringify(parseJson(escaped)), text)
    }),
    { numRuns: 2_000 },
  )
})

test('a repeated key has its last value, and __proto__ is a key like any other', () => {
  const text = String.raw`{"\\":0,"__proto__":{"a":1},"a":1,"\u0061":-0,"n":1.5e3,"t":[true,false]}`
  const value = parseJson(text)
  assert.equal(Object.getPrototypeOf(value), Object.prototype)
  assert.deepEqual(Object.keys(value), ['\\', '__proto__', 'a', 'n', 't'])
  assert.equal(JSON.stringify(value['__proto__']), '{"a":1}')
  assert(Object.is(value.a, -0))
  assert.equal(value.n, 1_500)
  assert.deepEqual(value.t, [true, false])
})

test('an invalid text fails with the error of JSON.parse', () => {
  const valid = String.raw`{"x\"":[1.5,"a\\",true],"b":null}`
  const texts = Array.from({ length: valid.length }, (_, at) => [
    valid.slice(0, at),
    valid.slice(0, at) + valid.slice(at + 1),
    `${valid.slice(0, at)}\\${valid.slice(at)}`,
    `${valid.slice(0, at)},${valid.slice(at)}`,
  ]).flat()
  assert.equal(parseJson(valid).b, null)
  for (const text of texts)
    assert.deepEqual(outcomeOf(parseJson, text), outcomeOf(JSON.parse, text))
})

function outcomeOf(parse: (text: string) => unknown, text: string): unknown {
  try {
    return parse(text)
  } catch (error) {
    assert(error instanceof SyntaxError)
    return error.message
  }
}

test('deep nesting and long strings are read, in linear time', () => {
  const depth = 50_000
  const nested = String.raw`${'{"\\\\":['.repeat(depth)}1${']}'.repeat(depth)}`
  let value = parseJson(nested)
  for (let level = 0; level < depth; level += 1) [value] = value['\\']
  assert.equal(value, 1)
  const long = { '\\': '"\\'.repeat(2_500_000), spaces: ' \\'.repeat(500_000) }
  const { '\\': text, spaces } = parseJson(JSON.stringify(long))
  assert(text === long['\\'] && spaces === long.spaces)
  const escapes = Array.from({ length: 100_000 }, () => '\\" :')
  assert.equal(parseJson(JSON.stringify({ escapes, 'last"': 1 })).escapes.length, 100_000)
})
