import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { hasMetadataValue, hasTerms } from '../../../test/harness/event/metadata-match.ts'
import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import { parseStrictJson } from '../../platform/json/strict-json.ts'
import { canonicalJson } from '../canonical.ts'
import { MetadataText, TermsMatcher, ValueMatcher } from './metadata-match.ts'
import type { MetadataTerm } from './metadata-term.ts'

const metadata = canonicalJson({
  ip: '185.220.101.3',
  request: { id: 'req_1', tags: ['a', { name: 'b' }] },
  'request.port': 443,
  ok: true,
  none: null,
  empty: {},
  list: [[], [1e21, -0.5]],
})

const has = (path: string, ...values: string[]) =>
  hasTerms(metadata, [{ path, values: values.length === 0 ? null : values }])

test('finds values by path, in objects and arrays, and compares them as text', () => {
  for (const [path, value] of [
    ['ip', '185.220.101.3'],
    ['request.id', 'req_1'],
    ['request.tags', 'a'],
    ['request.tags.name', 'b'],
    ['request.port', '443'],
    ['ok', 'true'],
    ['none', 'null'],
    ['list', '1e+21'],
    ['list', '-0.5'],
  ] as const) {
    assert(has(path, value), `${path}=${value}`)
    assert(has(path, 'other', value))
    assert(has(path))
    assert(!has(path, 'other'))
  }
  assert(!has('id', 'req_1'))
  assert(!has('request.tags.0', 'a'))
  assert(!has('ip', '185.220.101'))
})

test('a path exists if it leads to an object, an array or null', () => {
  for (const path of ['request', 'request.tags', 'empty', 'none', 'list']) assert(has(path), path)
  for (const path of ['requests', 'request.', 'empty.x', 'tags']) assert(!has(path), path)
})

test('a key can contain dots, and be empty', () => {
  const odd = canonicalJson({ 'a.b': { 'c.d': 1 }, a: { '': 2, 'b.c': [[3]] }, '': 4 })
  const hasOdd = (path: string, value: string) => hasTerms(odd, [{ path, values: [value] }])
  for (const [path, value] of [
    ['a.b.c.d', '1'],
    ['a.', '2'],
    ['a.b.c', '3'],
    ['', '4'],
  ] as const) {
    assert(hasOdd(path, value), path)
    assert(!hasOdd(path, 'other'), path)
  }
  assert(!hasOdd('a', '2'))
})

test('all terms must match', () => {
  const ip = { path: 'ip', values: ['185.220.101.3'] }
  assert(hasTerms(metadata, [ip, { path: 'ok', values: ['false', 'true'] }]))
  assert(!hasTerms(metadata, [ip, { path: 'ok', values: ['false'] }]))
})

test('a text matches whole values in either case, and neither keys nor parts of values', () => {
  for (const text of ['185.220.101.3', 'REQ_1', 'a', 'True', '443', '1E+21', 'NULL'])
    assert(hasMetadataValue(metadata, text), text)
  for (const text of ['185.220.101', 'ip', 'request', 'req_', 'É']) {
    assert(!hasMetadataValue(metadata, text), text)
  }
  // Keys that differ only in case.
  assert(hasMetadataValue(canonicalJson({ Ip: 'one', ip: 'two' }), 'ONE'))
})

/** The paths and texts of everything in the metadata. The text is null for objects and arrays. */
type Node = { path: string; text: string | null }

function nodesOf(metadata: string): Node[] {
  const nodes: Node[] = []
  const visit = (path: string, value: unknown): void => {
    if (typeof value !== 'object' || value === null) {
      nodes.push({ path, text: String(value) })
      return
    }
    nodes.push({ path, text: null })
    if (Array.isArray(value)) for (const item of value) visit(path, item)
    else for (const [key, child] of Object.entries(value)) visit(`${path}.${key}`, child)
  }
  const { value } = parseStrictJson(Buffer.from(metadata))
  assert(typeof value === 'object' && value !== null)
  for (const [key, child] of Object.entries(value)) visit(key, child)
  return nodes
}

const ESCAPED = ['\\', '"', 'x\\', 'x"', '\\"', '\n', '\u0001', '"a":1']
const PLAIN = ['a', 'b', 'A', '', '.', 'a.b', '0', 'null', '{', ':', ',', '__proto__']
const anyPart = fc.constantFrom(...ESCAPED, ...PLAIN, 'é', '…', '😀', '\u007f')
const anyText = fc.array(anyPart, { maxLength: 3 }).map((parts) => parts.join(''))
const { node: anyNode } = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    anyText,
    fc.constantFrom(true, false, null, 0, -0.5, 42, 1e21, 1e-7),
    fc.array(tie('node'), { maxLength: 4 }),
    fc.dictionary(anyText, tie('node'), { maxKeys: 4 }),
  ),
}))
/** Some is longer than what is compared in one piece. */
const anyMetadata = fc
  .tuple(fc.dictionary(anyText, anyNode, { maxKeys: 5 }), fc.constantFrom(0, 0, 0, 5_000, 20_000))
  .map(([members, more]) =>
    canonicalJson(more === 0 ? members : { ...members, b: 'b'.repeat(more) }),
  )

test('finds what a plain search of the parsed metadata finds', () => {
  fc.assert(
    fc.property(
      anyMetadata,
      fc.array(fc.tuple(fc.nat(), anyText), { minLength: 1, maxLength: 4 }),
      (metadata, picks) => {
        const nodes = nodesOf(metadata)
        const terms = picks.flatMap(([nth, other]): MetadataTerm[] => {
          const { path, text } = nodes[nth % nodes.length] ?? { path: other, text: other }
          const values = nth % 3 === 0 ? [other] : [other, text ?? '']
          return [
            { path, values: nth % 5 === 0 ? null : values },
            { path: nth % 7 === 0 ? other : path, values: text === null ? null : [text] },
          ]
        })
        const isFulfilled = ({ path, values }: MetadataTerm) =>
          nodes.some((node) => node.path === path && (values?.includes(node.text ?? '\0') ?? true))
        for (const term of terms) {
          assert.equal(hasTerms(metadata, [term]), isFulfilled(term), JSON.stringify(term))
        }
        assert.equal(hasTerms(metadata, terms), terms.every(isFulfilled))
        const lower = (text: string) => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
        for (const text of picks.flatMap(([nth, other]) => [
          other,
          nodes[nth % nodes.length]?.text ?? other,
        ])) {
          const isValue = nodes.some(
            (node) => node.text !== null && lower(node.text) === lower(text),
          )
          assert.equal(hasMetadataValue(metadata, text), isValue, text)
          assert.equal(
            hasMetadataValue(metadata, text.toUpperCase()),
            nodes.some(
              (node) => node.text !== null && lower(node.text) === lower(text.toUpperCase()),
            ),
          )
        }
      },
    ),
    { numRuns: rounds(120, 3_000) },
  )
})

test('finds keys with escapes, whatever was parsed before', () => {
  // After this, JSON.parse in V8 13.6 reads the key of one character, a quote, as a backslash.
  for (let times = 0; times < 10; times += 1) JSON.parse('{"a":1,"\\\\":2}')
  assert(hasTerms('{"a":1,"\\"":2}', [{ path: '"', values: ['2'] }]))
  assert(!hasTerms('{"a":1,"\\"":2}', [{ path: '\\', values: ['2'] }]))
})

/** Each is as large as the metadata of an event can be, and slow in its own way. */
const HOSTILE: Record<string, object> = {
  'many values at a path': { k9: Array.from({ length: 120_000 }, () => 0), v: ['v0'] },
  'many lists at a path': { k9: Array.from({ length: 80_000 }, () => []) },
  'many keys': Object.fromEntries(Array.from({ length: 18_000 }, (_, nth) => [`k9.${nth}`, 'v'])),
  'keys with escapes': Object.fromEntries(
    Array.from({ length: 16_000 }, (_, nth) => [`"\\${nth}`, 'v']),
  ),
  'deep values': {
    k9: Array.from({ length: 4_000 }, () => JSON.parse(`${'['.repeat(28)}${']'.repeat(28)}`)),
  },
  'a long string': { k9: 'a'.repeat(250_000) },
  'a string in both cases': { k9: 'aA'.repeat(125_000) },
  'a string of escapes': { k9: '"\\'.repeat(62_000) },
}

test('one step of any comparison takes a few milliseconds of CPU time', () => {
  const values = (prefix: string) => Array.from({ length: 20 }, (_, nth) => `${prefix}${nth}`)
  const terms = Array.from({ length: 9 }, (_, nth) => ({ path: `k9.${nth}`, values: values('w') }))
  const halves = 'a'.repeat(500)
  const long = `${halves}b${halves}`
  const matchers = [
    new TermsMatcher([...terms, { path: 'k9', values: values('w') }]),
    new TermsMatcher([{ path: 'k9', values: [long] }]),
    new TermsMatcher([{ path: long.slice(400, 650), values: null }]),
    new ValueMatcher(long),
    new ValueMatcher('w'),
  ]
  for (const [name, members] of Object.entries(HOSTILE)) {
    const metadata = canonicalJson(members)
    for (const [nth, matcher] of matchers.entries()) {
      const triesMs = Array.from({ length: 3 }, () => longestStepMs(matcher, metadata))
      assert(Math.min(...triesMs) < 5, `${name}, ${nth}: ${triesMs.join()} ms`)
    }
  }
})

function longestStepMs(matcher: TermsMatcher | ValueMatcher, metadata: string): number {
  let longestUs = 0
  let before = process.threadCpuUsage()
  const comparison = matcher.compare(new MetadataText(metadata))
  for (let isDone = typeof comparison === 'boolean'; ;) {
    const { user, system } = process.threadCpuUsage(before)
    longestUs = Math.max(longestUs, user + system)
    if (isDone || typeof comparison === 'boolean') return longestUs / 1_000
    before = process.threadCpuUsage()
    isDone = comparison.next().done === true
  }
}
