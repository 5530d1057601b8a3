import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../platform/id.ts'
import { learnTypes } from './learn-types.ts'

test('a key was last seen when an event with it was received last, in whatever order events are stored', () => {
  const events = [20, 10].map((receivedAtMs, index) => ({
    id: newId<'event'>(receivedAtMs),
    seq: index + 1,
    receivedAtMs,
    category: 'auth',
    action: 'login',
    metadata: '{"ip":"192.0.2.1"}',
  }))
  const steps = learnTypes(events, { types: new Map(), keys: [] }, 100)
  let step = steps.next()
  while (!step.done) step = steps.next()
  const { types, keys } = step.value
  assert.deepEqual(
    keys.map(({ lastSeenAtMs }) => lastSeenAtMs),
    [20],
  )
  // Of the event that `lastSeq` names.
  assert.deepEqual(
    types.map(({ lastSeq, lastSeenAtMs }) => [lastSeq, lastSeenAtMs]),
    [[2, 10]],
  )
})
