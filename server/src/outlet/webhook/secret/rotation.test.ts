import assert from 'node:assert/strict'
import { test } from 'node:test'
import { finishRotation, rotate, secretsAt } from './rotation.ts'

const [a, b, c] = ['a', 'b', 'c'].map((text) => Buffer.from(text))
assert(a && b && c)
const alone = { current: a, next: null, nextAt: null }
const overlapping = { current: a, next: b, nextAt: new Date(1_000) }

test('an overlap ends on time and leaves only the new secret', () => {
  assert.deepEqual(secretsAt(overlapping, 999), overlapping)
  assert.deepEqual(secretsAt(overlapping, 1_000), { current: b, next: null, nextAt: null })
  assert.deepEqual(secretsAt(alone, 1_000), alone)
})

test('a rotation adds the new secret until the overlap ends', () => {
  const rotated = rotate(alone, b, { overlapMs: 500, nowMs: 500 })
  assert.deepEqual(rotated, { current: a, next: b, nextAt: new Date(1_000) })
})

test('a second rotation must wait for the first to end', () => {
  assert.equal(rotate(overlapping, c, { overlapMs: 1, nowMs: 999 }), null)
  const later = rotate(overlapping, c, { overlapMs: 1, nowMs: 1_000 })
  assert.deepEqual(later, { current: b, next: c, nextAt: new Date(1_001) })
})

test('without an overlap, the new secret replaces all others', () => {
  for (const secrets of [alone, overlapping]) {
    const rotated = rotate(secrets, c, { overlapMs: 0, nowMs: 0 })
    assert.deepEqual(rotated, { current: c, next: null, nextAt: null })
  }
})

test('finishing a rotation leaves only the new secret, and without a rotation nothing is lost', () => {
  assert.deepEqual(finishRotation(overlapping), { current: b, next: null, nextAt: null })
  assert.deepEqual(finishRotation(alone), alone)
})
