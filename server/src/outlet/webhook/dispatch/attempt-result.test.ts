import assert from 'node:assert/strict'
import { test } from 'node:test'
import { disablesWebhook, statusAfter } from './attempt-result.ts'
import { ERROR_CLASSES, DELIVERY_TRANSITIONS, type AttemptOutcome } from '../delivery/delivery.ts'

const accepted = (responseStatus: number): AttemptOutcome => ({
  kind: 'accepted',
  responseStatus,
  excerpt: '',
})
const refused = (responseStatus: number): AttemptOutcome => ({
  kind: 'refused',
  responseStatus,
  errorClass: responseStatus < 400 ? 'redirect' : 'http',
  retryAfterMs: null,
  excerpt: '',
})
const unreachable: AttemptOutcome[] = ERROR_CLASSES.filter(
  (name) => name !== 'http' && name !== 'redirect',
).map((errorClass) => ({ kind: 'unreachable', errorClass, message: '' }))
const failures = [...[301, 308, 400, 404, 429, 500, 503].map(refused), ...unreachable]

test('an accepted attempt succeeds, even if it is the last one', () => {
  for (const outcome of [200, 204, 299].map(accepted)) {
    assert.equal(statusAfter(outcome, { attemptsLeft: 7 }), 'SUCCEEDED')
    assert.equal(statusAfter(outcome, { attemptsLeft: 0 }), 'SUCCEEDED')
  }
})

test('a failed attempt is retried while attempts are left, then the delivery fails', () => {
  for (const outcome of failures) {
    assert.equal(statusAfter(outcome, { attemptsLeft: 1 }), 'RETRY_SCHEDULED')
    assert.equal(statusAfter(outcome, { attemptsLeft: 0 }), 'FAILED')
  }
})

test('only a 410 fails a delivery immediately and disables the webhook', () => {
  assert.equal(statusAfter(refused(410), { attemptsLeft: 7 }), 'FAILED')
  assert.equal(disablesWebhook(refused(410)), true)
  for (const outcome of [accepted(200), ...failures]) assert.equal(disablesWebhook(outcome), false)
})

test('an attempt leads only to states that the state machine allows', () => {
  for (const outcome of [accepted(200), refused(410), ...failures]) {
    for (const attemptsLeft of [0, 1]) {
      assert(DELIVERY_TRANSITIONS.SENDING.includes(statusAfter(outcome, { attemptsLeft })))
    }
  }
})
