import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalJson } from '../canonical.ts'
import { hasMetadataValue, hasTerms, orderTerms } from './metadata-term.ts'

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
  assert(!hasTerms(null, [{ path: 'ip', values: null }]))
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

test('takes a few milliseconds of CPU time per event, whatever its shape and the terms', () => {
  const terms = Array.from({ length: 10 }, (_, nth) => ({
    path: `k${nth}`,
    values: Array.from({ length: 20 }, (_value, at) => `v${at}`),
  }))
  const all = {
    ...Object.fromEntries(terms.map(({ path }) => [path, ['v0'].concat('v0')])),
    k9: 'x',
  }
  const shapes = [
    { ...all, k9: Array.from({ length: 60_000 }, () => 0) },
    { ...all, k9: Array.from({ length: 60_000 }, () => []) },
    Object.fromEntries(Array.from({ length: 15_000 }, (_, nth) => [`k9.${nth}`, { v0: 'v0' }])),
  ].map((shape) => canonicalJson({ ...shape, v: terms[0]?.values ?? [] }))
  for (const shape of shapes) {
    const before = process.threadCpuUsage()
    for (let times = 0; times < 20; times += 1) {
      hasTerms(shape, terms)
      hasMetadataValue(shape, 'v00')
    }
    const { user, system } = process.threadCpuUsage(before)
    assert((user + system) / 20 < 40_000, `${(user + system) / 20} µs`)
  }
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

test('equivalent terms are ordered equally', () => {
  const one = orderTerms([
    { path: 'b', values: ['2', '1', '2'] },
    { path: 'a', values: null },
    { path: 'a', values: null },
  ])
  const other = orderTerms([
    { path: 'a', values: null },
    { path: 'b', values: ['1', '2'] },
  ])
  assert.deepEqual(one, other)
  assert.equal(orderTerms([]), null)
})
