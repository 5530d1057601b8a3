import assert from 'node:assert/strict'
import { test } from 'node:test'

import { parsePid } from './engine-process.ts'

test('only a whole positive number on the first line is a pid', () => {
  assert.equal(parsePid('4711\n/data/cluster\n'), 4711)
  assert.equal(parsePid('-4711\n'), null)
  assert.equal(parsePid(''), null)
  assert.equal(parsePid('x\n1\n'), null)
})
