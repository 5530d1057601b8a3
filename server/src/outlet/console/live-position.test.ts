import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../platform/id.ts'
import { positionText, readPosition } from './live-position.ts'

test('a place is read as it was written, whatever the order of the chains', () => {
  const ids = Array.from({ length: 5 }, () => newId<'workspace'>())
  const positions = new Map(ids.map((id, nth) => [id, nth * 1_234_567]))
  assert.deepEqual(
    readPosition(positionText(positions), ids.toReversed()),
    new Map([...positions].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  )
})

test('what is no place in these chains is none', () => {
  const ids = [newId<'workspace'>(), newId<'workspace'>()]
  for (const text of ['', '1', '1.2.3', '-1.2', '1.x!', '1. 2', '1.', `${'z'.repeat(11)}.1`]) {
    assert.equal(readPosition(text, ids), null, text)
  }
})
