import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ChainPosition, compare } from './chain-position.ts'

const at = (seq: number, fields: Partial<ChainPosition> = {}): ChainPosition => ({
  seq,
  hash: `hash of ${seq}`,
  archivedSeq: 0,
  isStandby: false,
  ...fields,
})

test('only a replica with the same last event has the same chain', () => {
  assert.equal(compare(at(5), at(5)), 'same')
  assert.equal(compare(at(5), at(5, { hash: 'another' })), 'other')
})

test('a replica without the last event is behind', () => {
  assert.equal(compare(at(5), at(4)), 'behind')
  assert.equal(compare(at(5), null), 'behind')
})

test('a replica with more events is ahead', () => {
  assert.equal(compare(at(5), at(6)), 'ahead')
})

test('a replica that archived more may lack events that the primary has in its table', () => {
  assert.equal(compare(at(5, { archivedSeq: 2 }), at(5, { archivedSeq: 3 })), 'archived')
  assert.equal(compare(at(5, { archivedSeq: 3 }), at(5, { archivedSeq: 2 })), 'same')
})
