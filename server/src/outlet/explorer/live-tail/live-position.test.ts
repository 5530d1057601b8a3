import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../platform/id.ts'
import { positionText, readPosition } from './live-position.ts'

test('a position is read back as written, in any order of the chains', () => {
  const ids = Array.from({ length: 5 }, () => newId<'workspace'>())
  const positions = new Map(ids.map((id, nth) => [id, nth * 1_234_567]))
  assert.deepEqual(
    readPosition(positionText(positions), ids.toReversed()),
    new Map([...positions].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  )
})

test('rejects a position that does not belong to these chains', () => {
  const ids = [newId<'workspace'>(), newId<'workspace'>()]
  for (const text of ['', '1', '1.2.3', '-1.2', '1.x!', '1. 2', '1.', `${'z'.repeat(11)}.1`]) {
    assert.equal(readPosition(text, ids), null, text)
  }
})
