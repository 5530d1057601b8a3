import assert from 'node:assert/strict'
import { test } from 'node:test'

import { parsePid } from './process.ts'

test('accepts only a positive integer on the first line as a pid', () => {
  assert.equal(parsePid('4711\n/data/cluster\n'), 4711)
  assert.equal(parsePid('-4711\n'), null)
  assert.equal(parsePid(''), null)
  assert.equal(parsePid('x\n1\n'), null)
})
