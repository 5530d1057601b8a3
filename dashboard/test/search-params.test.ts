import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSearchParams, formatSearchParams } from '../src/search-params.ts'

test('text values are written to the URL without quotes', () => {
  assert.equal(
    formatSearchParams({ live: '1', text: 'a b', range: '24h' }),
    '?live=1&text=a+b&range=24h',
  )
  assert.equal(
    formatSearchParams({ ended: true, days: 30, gone: undefined, none: null }),
    '?ended=true&days=30',
  )
  assert.equal(formatSearchParams({}), '')
})

test('every written value is read back unchanged', () => {
  const texts = [
    '1',
    'true',
    'null',
    '"quoted"',
    '"',
    '["a","b"]',
    '[',
    '{"a":1}',
    'a&b=c#d?e',
    'ü 🙂 +',
    '\\"',
  ]
  for (const text of texts) {
    assert.deepEqual(parseSearchParams(formatSearchParams({ text })), { text }, text)
  }
  const lists = { not: ['category:billing', '"1"', 'action:x'] }
  assert.deepEqual(parseSearchParams(formatSearchParams(lists)), lists)
})

test('old URLs with quoted values are still read correctly', () => {
  assert.deepEqual(parseSearchParams('?live=%221%22&text=%22true%22&range=7d&days=30'), {
    live: '1',
    text: 'true',
    range: '7d',
    days: '30',
  })
  assert.deepEqual(parseSearchParams('?not=%5B%22category%3Abilling%22%2C%22action%3Ax%22%5D'), {
    not: ['category:billing', 'action:x'],
  })
})

test('parameter names such as toString are treated like any other', () => {
  assert.deepEqual(Object.keys(parseSearchParams('?constructor=x&toString=y')), [
    'constructor',
    'toString',
  ])
})
