import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAtOnce } from '../../platform/scheduling/time-slice.ts'
import { canonicalJson } from '../canonical.ts'
import { findKeys, PATH_CHARS_MAX, pathKeys } from './metadata-keys.ts'

function keysOf(metadata: object): [keys: string[], type: string][] {
  const found: [string[], string][] = []
  const text = canonicalJson(metadata)
  runAtOnce(findKeys(text, (path, type) => found.push([pathKeys(path ?? ''), type])))
  return found
}

test('finds the keys of the metadata and of the objects in it, and no deeper ones', () => {
  const metadata = {
    amount: 1.5,
    card: { brand: 'visa', chip: { on: true }, digits: [4, 2], empty: {} },
    list: [{ inner: 1 }, '}', ['"']],
    note: null,
    ok: false,
    text: 'a "quoted" {text}, and a \\',
    zero: {},
  }
  assert.deepEqual(keysOf(metadata), [
    [['amount'], 'number'],
    [['card'], 'object'],
    [['card', 'brand'], 'string'],
    [['card', 'chip'], 'object'],
    [['card', 'digits'], 'array'],
    [['card', 'empty'], 'object'],
    [['list'], 'array'],
    [['note'], 'null'],
    [['ok'], 'boolean'],
    [['text'], 'string'],
    [['zero'], 'object'],
  ])
  assert.deepEqual(keysOf({}), [])
})

test('finds keys with special names, such as __proto__, and with special characters', () => {
  const names = [
    '',
    '__proto__',
    'constructor',
    'a,b',
    'a.b',
    '"',
    '\\',
    '\\"',
    '{',
    'é',
    '\n',
    '💥',
  ]
  for (const name of names) {
    const metadata = Object.fromEntries([[name, Object.fromEntries([[name, 1]])]])
    assert.deepEqual(keysOf(metadata), [
      [[name], 'object'],
      [[name, name], 'number'],
    ])
  }
})

test('a path that is too long is not built, and an object with a long key is not entered', () => {
  const fits = 'k'.repeat(PATH_CHARS_MAX - 2)
  const found: (string | null)[] = []
  const metadata = { [fits]: { a: 1 }, [`${fits}l`]: { a: 1, b: 2 }, [`${fits}m`]: 1, z: 1 }
  runAtOnce(findKeys(canonicalJson(metadata), (path) => found.push(path)))
  assert.deepEqual(found, [`"${fits}"`, null, null, null, '"z"'])
})

test('large metadata is scanned in steps', () => {
  const metadata = Object.fromEntries(Array.from({ length: 40_000 }, (_, nth) => [`k${nth}`, nth]))
  let keys = 0
  const scan = findKeys(canonicalJson(metadata), () => (keys += 1))
  let steps = 0
  while (scan.next().done !== true) steps += 1
  assert.equal(keys, 40_000)
  assert(steps > 20, `${steps} steps`)
})
