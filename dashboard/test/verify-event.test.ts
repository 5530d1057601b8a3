import assert from 'node:assert/strict'
import { test } from 'node:test'
import vectors from '../../vectors/chain.json' with { type: 'json' }
import {
  canonical,
  coreOf,
  type VerifiableEvent,
  verifyEvent,
} from '../src/pages/explorer/event/verify-event.ts'

/** Changes that only the previous event can reveal, not a check of one event alone. */
const SEEN_BY_NEIGHBOURS = [
  'a gap in seq',
  'the event before has another hash',
  'an id that does not ascend',
]

test('the browser verifies every event of the test vectors and reports erased parts', async () => {
  for (const { events } of vectors.chains) {
    for (const { title, event, core } of events) {
      const row: VerifiableEvent = event
      const check = await verifyEvent(row)
      assert.deepEqual(check.differences, [], title)
      assert.equal(check.hash, row.hash, title)
      assert.equal(coreOf(row), core, title)
      const gone = (['actor', 'metadata', 'resource'] as const).filter(
        (part) => part in row.sealed && row[part] === null,
      )
      assert.deepEqual(check.erased, gone, title)
    }
  }
})

test('the browser’s canonical JSON of every part matches the test vectors', () => {
  for (const { events } of vectors.chains) {
    for (const { title, canonical: texts, event } of events) {
      for (const [part, text] of Object.entries(texts)) {
        assert.equal(canonical(Reflect.get(event, part)), text, title)
      }
    }
  }
})

test('the browser reports every kind of tampering that a single event can reveal', async () => {
  for (const { title, event } of vectors.tampered) {
    const { differences } = await verifyEvent(event)
    assert.equal(differences.length > 0, !SEEN_BY_NEIGHBOURS.includes(title), title)
  }
})
