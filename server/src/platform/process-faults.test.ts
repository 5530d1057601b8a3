import assert from 'node:assert/strict'
import { test } from 'node:test'
import { comesFrom } from './process-faults.ts'

const HERE = new URL('.', import.meta.url).href
const ELSEWHERE = new URL('../elsewhere/', import.meta.url).href

test('recognizes an error by the folder of its frames, even as the cause of another', () => {
  const error = new Error('here')
  assert(comesFrom(HERE, error))
  assert(!comesFrom(ELSEWHERE, error))
  const outer = new Error('outer', { cause: new Error('middle', { cause: error }) })
  outer.stack = 'Error: outer'
  assert(comesFrom(HERE, outer))
})

test('ignores a message that looks like a frame', () => {
  const message = `no such file\n    at submit (${ELSEWHERE}batcher.ts:1:1)`
  assert(!comesFrom(ELSEWHERE, new Error(message)))
})

test('accepts any thrown value', () => {
  assert(!comesFrom(ELSEWHERE, 'text'))
  assert(!comesFrom(ELSEWHERE, undefined))
  const circle = new Error('circle')
  circle.cause = circle
  assert(!comesFrom(ELSEWHERE, circle))
})
