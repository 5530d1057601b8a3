import assert from 'node:assert/strict'
import { test } from 'node:test'
import canonicalize from 'canonicalize'
import * as fc from 'fast-check'
import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import type { JsonFault, JsonResult } from './json-fault.ts'
import { CanonicalJson, readTokens } from './json-reader.ts'
import type { JsonSource } from './json-scanner.ts'
import { parseStrictJson, readJson } from './strict-json.ts'
import { runAtOnce } from '../scheduling/time-slice.ts'

const OPTIONS = { canonicalMember: 'metadata', keysMax: 1_000 }

const anyKey = fc.string({
  unit: fc.constantFrom('"', '\\', '\n', 'a', 'b', 'é', '\u{1F600}', '\uffee', '0', '1'),
})
const anyJson = fc.dictionary(anyKey, fc.jsonValue({ maxDepth: 4, stringUnit: 'grapheme' }))
const anySpace = fc.constantFrom('', ' ', '\n\t')

function sourceOf(text: string): JsonSource {
  const bytes = Buffer.from(text)
  return { bytes, start: 0, end: bytes.length }
}

function resultOf(text: string): JsonResult {
  return runAtOnce(readTokens(sourceOf(text), OPTIONS))
}

function valueOf(text: string): unknown {
  const { value, fault } = resultOf(text)
  assert.equal(fault, null)
  return value
}

/** JSON.stringify writes -0 as 0. */
const textOf = (value: unknown, space: string) => JSON.stringify(value, null, space)

test('produces the same canonical JSON as the canonicalize package', () => {
  fc.assert(
    fc.property(anyJson, anySpace, (metadata, space) => {
      const read = valueOf(textOf({ metadata, other: { metadata } }, space))
      assert(typeof read === 'object' && read !== null && 'metadata' in read && 'other' in read)
      assert(read.metadata instanceof CanonicalJson)
      assert.equal(read.metadata.text, canonicalize(metadata))
      assert.equal(JSON.stringify(read.other), JSON.stringify({ metadata }))
    }),
    { numRuns: rounds(150, 500) },
  )
})

test('sorts many keys the same way as few, whatever their order', () => {
  const keys = Array.from({ length: 3_000 }, (_, index) => `${(index * 7_919) % 3_001}-é"`)
  const metadata = Object.fromEntries(keys.map((key) => [key, [key, { b: 1, a: 1e21 }]]))
  const read = valueOf(JSON.stringify({ metadata }))
  assert(typeof read === 'object' && read !== null && 'metadata' in read)
  assert(read.metadata instanceof CanonicalJson)
  assert.equal(read.metadata.text, canonicalize(metadata))
})

test('reads a long string like a short one, wherever it is split', () => {
  const units = ['x', '\\n', '\\"', '\\\\', '€', '😀', '\\ud83d\\ude00', '\\u00e9']
  for (const unit of units) {
    for (const before of ['', 'a', 'ab', 'abc', 'abcd', 'abcde', 'abcdefg']) {
      // Splits at the same places as a shorter one.
      if (before.length >= Buffer.byteLength(unit)) continue
      const count = Math.ceil(rounds(140_000, 560_000) / Buffer.byteLength(unit))
      const token = `"${before}${unit.repeat(count)}"`
      const read = valueOf(`{"metadata":{${token}:${token}},"k":${token}}`)
      assert(typeof read === 'object' && read !== null && 'metadata' in read && 'k' in read)
      const value: unknown = JSON.parse(token)
      assert(read.k === value, unit)
      assert(read.metadata instanceof CanonicalJson)
      assert(read.metadata.text === canonicalize({ [String(value)]: value }), unit)
    }
  }
})

test('finds an error anywhere in a long string', () => {
  for (const [unit, end] of [
    ['x', '\\ud800'],
    ['\\n', '\\ude00'],
    ['\\ud83d\\ude00', '\\u0000'],
    ['\\n', '\\x'],
    ['x', '\u0001'],
  ] as const) {
    const small = faultOf(parseStrictJson(Buffer.from(`{"a":["${end}"]}`)))
    const text = `{"a":["${unit.repeat(70_000)}${end}"]}`
    const large = faultOf(resultOf(text))
    assert.deepEqual([large.kind, large.path], [small.kind, small.path], end)
  }
})

test('refuses a large text for the same errors as a small one', async () => {
  const pad = `"pad":"${'x'.repeat(20_000)}"`
  for (const rest of [
    '"metadata":{"a":1,"b":{"c":1,"c":2}}',
    '"metadata":{"a":1,"\\u0061":2}',
    '"a":1,"a":2',
    '"metadata":{"n":[12345678901234567890]}',
    '"metadata":{"n":"\\u0000"}',
    '"metadata":{"\\ud800":1}',
    `"metadata":${'{"a":'.repeat(32)}1${'}'.repeat(32)}`,
    '"metadata":{"a":1,}',
    '"metadata":{"a":tru}',
    '"metadata":{"a":"\\x"}',
    '"metadata":{"a":"\u0001"}',
  ]) {
    const small = faultOf(parseStrictJson(Buffer.from(`{"pad":"",${rest}}`)))
    const large = faultOf(await readJson(sourceOf(`{${pad},${rest}}`), OPTIONS))
    assert.deepEqual([large.kind, large.path], [small.kind, small.path], rest)
  }
})

function faultOf({ fault }: JsonResult): JsonFault {
  assert(fault, 'it was accepted')
  return fault
}

test('limits the number of keys everywhere except in the named member', () => {
  const many = Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`k${index}`, 1]))
  assert.equal(resultOf(JSON.stringify({ metadata: many })).fault, null)
  assert.equal(faultOf(resultOf(JSON.stringify({ other: many }))).path, '/other')
  assert.equal(faultOf(resultOf(JSON.stringify(many))).path, '')
})

test('returns the plain value if the named member is not an object', () => {
  for (const metadata of [null, 1, 'text', [1, { a: 1 }]]) {
    const read = valueOf(JSON.stringify({ metadata }))
    assert.deepEqual(read, { metadata })
  }
})
