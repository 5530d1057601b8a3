import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stateOf, type HealthState } from './webhook-state.ts'

const MINUTE_MS = 60_000
const NONE = { succeeded: 0, failed: 0, retrying: 0 }

/** 1,000 deliveries, of which this many did not succeed. */
function without(failed: number) {
  return { succeeded: 1_000 - failed, failed, retrying: 0 }
}

function assertStates(cases: readonly (readonly [HealthState, Parameters<typeof stateOf>[0]])[]) {
  for (const [expected, results] of cases) {
    assert.equal(stateOf(results), expected, JSON.stringify(results))
  }
}

test('the rate of the last hour degrades a webhook below 99% and fails it below 90%', () => {
  const lastDay = without(0)
  assertStates([
    ['HEALTHY', { lastHour: without(10), lastDay, overdueMs: 0 }],
    ['DEGRADED', { lastHour: without(11), lastDay, overdueMs: 0 }],
    ['DEGRADED', { lastHour: without(100), lastDay, overdueMs: 0 }],
    ['FAILING', { lastHour: without(101), lastDay, overdueMs: 0 }],
  ])
})

test('the rate of the last day degrades a webhook below 99% and fails it below 50%', () => {
  const lastHour = NONE
  assertStates([
    ['HEALTHY', { lastHour, lastDay: without(10), overdueMs: 0 }],
    ['DEGRADED', { lastHour, lastDay: without(11), overdueMs: 0 }],
    ['DEGRADED', { lastHour, lastDay: without(500), overdueMs: 0 }],
    ['FAILING', { lastHour, lastDay: without(501), overdueMs: 0 }],
  ])
})

test('a backlog degrades a webhook after five minutes and fails it after an hour', () => {
  const results = { lastHour: NONE, lastDay: without(0) }
  assertStates([
    ['HEALTHY', { ...results, overdueMs: 5 * MINUTE_MS }],
    ['DEGRADED', { ...results, overdueMs: 5 * MINUTE_MS + 1 }],
    ['DEGRADED', { ...results, overdueMs: 60 * MINUTE_MS }],
    ['FAILING', { ...results, overdueMs: 60 * MINUTE_MS + 1 }],
    ['FAILING', { lastHour: NONE, lastDay: NONE, overdueMs: 60 * MINUTE_MS + 1 }],
  ])
})

test('a delivery that waits for a retry counts as not delivered', () => {
  const retrying = { succeeded: 8, failed: 0, retrying: 1 }
  assertStates([['FAILING', { lastHour: retrying, lastDay: retrying, overdueMs: 0 }]])
})

test('a webhook without deliveries in the last day is idle', () => {
  assertStates([['IDLE', { lastHour: NONE, lastDay: NONE, overdueMs: 0 }]])
})
