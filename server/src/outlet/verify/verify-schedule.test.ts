import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextDueAt } from './verify-schedule.ts'

const at = (text: string) => new Date(`2026-03-${text}Z`)
const DAY_MS = 86_400_000

test('a chain is next due at the same time of day, however long it waited', () => {
  const due = at('01T06:00')
  assert.deepEqual(nextDueAt(due, at('01T06:00'), DAY_MS), at('02T06:00'))
  assert.deepEqual(nextDueAt(due, at('01T23:00'), DAY_MS), at('02T06:00'))
  assert.deepEqual(nextDueAt(due, at('04T06:00'), DAY_MS), at('05T06:00'))
  assert.deepEqual(nextDueAt(due, at('04T07:00'), DAY_MS), at('05T06:00'))
})

test('a chain that was planned while the clock was ahead is due one interval from now', () => {
  assert.deepEqual(nextDueAt(at('20T06:00'), at('01T06:00'), DAY_MS), at('02T06:00'))
})
