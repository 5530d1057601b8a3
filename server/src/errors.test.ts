import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from './errors.ts'

test('collects stack traces only for internal errors, because rejections can come in floods', () => {
  const refusal = new ApiError('rate_limited')
  assert.equal(refusal.stack, `ApiError: ${refusal.message}`)
  assert.match(new ApiError('internal').stack ?? '', /errors\.test\.ts/)
  assert.match(new Error('later').stack ?? '', /errors\.test\.ts/)
})
