import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../errors.ts'
import { newId } from '../platform/id.ts'
import { DailyBytes } from './daily-bytes.ts'

const HOUR_MS = 3_600_000
const BYTES_MAX = 24e9

function refusalOf(work: () => void): ApiError | null {
  try {
    work()
    return null
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

test('refuses a company that reached its daily limit, and no other', () => {
  let nowMs = 0
  const bytes = new DailyBytes(() => nowMs)
  const [company, other] = [newId<'company'>(), newId<'company'>()]
  bytes.add(company, BYTES_MAX - 1)
  assert.equal(
    refusalOf(() => bytes.refuse(company, BYTES_MAX)),
    null,
  )
  bytes.add(company, 2e9)
  const refusal = refusalOf(() => bytes.refuse(company, BYTES_MAX))
  assert.deepEqual([refusal?.status, refusal?.code], [429, 'rate_limited'])
  assert.match(refusal?.message ?? '', /as its plan allows per day: 24 GB/)
  // It stored 2 GB too much, and an hour frees 1 GB.
  assert.equal(refusal?.retryAfterSeconds, 7_201)
  bytes.refuse(other, BYTES_MAX)

  nowMs += 2 * HOUR_MS - 1_000
  assert(refusalOf(() => bytes.refuse(company, BYTES_MAX)))
  nowMs += 2_000
  bytes.refuse(company, BYTES_MAX)
})

test('what a larger plan stored counts for at most a day', () => {
  const bytes = new DailyBytes(() => 0)
  const company = newId<'company'>()
  bytes.add(company, 100 * BYTES_MAX)
  assert.equal(refusalOf(() => bytes.refuse(company, BYTES_MAX))?.retryAfterSeconds, 86_401)
  bytes.refuse(company, null)
  bytes.refuse(company, BYTES_MAX)
})

test('a company can store events at the average rate of its daily limit', () => {
  let nowMs = 0
  const bytes = new DailyBytes(() => nowMs)
  const company = newId<'company'>()
  for (let hour = 0; hour < 100; hour += 1) {
    bytes.refuse(company, BYTES_MAX)
    bytes.add(company, BYTES_MAX / 24)
    nowMs += HOUR_MS
  }
  bytes.refuse(company, BYTES_MAX)
})
