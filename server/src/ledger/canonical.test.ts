import assert from 'node:assert/strict'
import { test } from 'node:test'

import canonicalize from 'canonicalize'
import * as fc from 'fast-check'

import { rounds } from '../../test/harness/timing/fault-rounds.ts'
import { canonicalJson, canonicalString } from './canonical.ts'

/** Any character that UTF-8 can encode. fast-check's own unit 'binary' takes a second to build. */
const anyChar = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((point) => String.fromCodePoint(point))
const anyText = fc.string({ unit: anyChar })
const anyJson = fc.oneof(
  fc.jsonValue({ maxDepth: 5, stringUnit: anyChar }),
  fc.dictionary(anyText, fc.oneof(anyText, fc.double({ noNaN: true, noDefaultInfinity: true }))),
  fc.dictionary(fc.nat(200).map(String), fc.jsonValue({ maxDepth: 2 })),
)

test('formats any JSON value like the reference implementation', () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      assert.equal(canonicalJson(value), canonicalize(value))
    }),
    { numRuns: rounds(300, 1_000) },
  )
})

test('canonical JSON parses to the same value and is already canonical', () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      const text = canonicalJson(value)
      assert.equal(canonicalJson(JSON.parse(text)), text)
    }),
  )
})

test('the order of keys in the input does not matter', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyText, fc.nat())), (entries) => {
      const unique = [...new Map(entries)]
      const forth = canonicalJson(Object.fromEntries(unique))
      assert.equal(canonicalJson(Object.fromEntries(unique.toReversed())), forth)
    }),
  )
})

test('quotes any well-formed string like JSON.stringify', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      assert.equal(canonicalString(text), JSON.stringify(text))
    }),
  )
})

test('sorts the example of RFC 8785, section 3.2.3, as specified', () => {
  const value = JSON.parse(
    '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh",' +
      '"1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control",' +
      '"\\u00f6":"Latin Small Letter O With Diaeresis"}',
  )
  assert.equal(
    canonicalJson(value),
    '{"\\r":"Carriage Return","1":"One","\u0080":"Control",' +
      '"\u00f6":"Latin Small Letter O With Diaeresis","\u20ac":"Euro Sign",' +
      '"\u{1F600}":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
  )
})

test('formats extreme numbers as RFC 8785 specifies', () => {
  const numbers = [
    1.0,
    1e21,
    1e20,
    1e-7,
    1e-6,
    -0,
    0.1,
    Number('333333333.33333329'),
    Number.MAX_SAFE_INTEGER,
  ]
  assert.equal(
    canonicalJson(numbers),
    '[1,1e+21,100000000000000000000,1e-7,0.000001,0,0.1,333333333.3333333,9007199254740991]',
  )
})

test('throws for values that are not JSON', () => {
  const cyclic: unknown[] = []
  cyclic.push(cyclic)
  for (const value of [
    undefined,
    Number.NaN,
    Infinity,
    () => 1,
    Symbol('s'),
    1n,
    new Date(),
    cyclic,
  ]) {
    assert.throws(() => canonicalJson(value), assert.AssertionError)
    assert.throws(() => canonicalJson({ value }), assert.AssertionError)
  }
  assert.throws(() => canonicalJson(['\ud800']), assert.AssertionError)
})
