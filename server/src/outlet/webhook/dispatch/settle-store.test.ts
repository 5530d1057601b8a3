import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { rounds } from '../../../../test/harness/timing/fault-rounds.ts'
import { newId } from '../../../platform/id.ts'
import { countByWebhook } from './settle-store.ts'
import type { Settlement } from './settlement.ts'

const WORKSPACE = newId<'workspace'>()
const WEBHOOKS = [newId<'webhook'>(), newId<'webhook'>(), newId<'webhook'>()] as const

type End = { webhook: 0 | 1 | 2; kind: 'good' | 'bad' | 'last' | 'unsent'; endedAtMs: number }

const STATUS_OF = {
  good: 'SUCCEEDED',
  bad: 'RETRY_SCHEDULED',
  last: 'FAILED',
  unsent: 'FAILED',
} as const

function settlementOf({ webhook, kind, endedAtMs }: End): Settlement {
  return {
    workspaceId: WORKSPACE,
    webhookId: WEBHOOKS[webhook],
    deliveryId: newId(),
    sequence: 1,
    lease: newId(),
    status: STATUS_OF[kind],
    dueAt: new Date(endedAtMs),
    endedAt: new Date(endedAtMs),
    record: {
      attempt: 1,
      url: 'https://receiver.example/',
      startedAt: new Date(endedAtMs).toISOString(),
      durationMs: 1,
      responseStatus: null,
      errorClass: kind === 'bad' || kind === 'last' ? 'timeout' : null,
      message: null,
      excerpt: null,
    },
  }
}

const anyEnd: fc.Arbitrary<End> = fc.record({
  webhook: fc.constantFrom(0, 1, 2),
  kind: fc.constantFrom('good', 'bad', 'last', 'unsent'),
  endedAtMs: fc.integer({ min: 0, max: 1_000 }),
})

/** All times differ, because the order of two results in the same millisecond is undefined. */
const anyEnds = fc.uniqueArray(anyEnd, { selector: ({ endedAtMs }) => endedAtMs, maxLength: 60 })

test('counts failures per webhook since the last success, in the order the attempts ended', () => {
  fc.assert(
    fc.property(anyEnds, (ends) => {
      const counts = countByWebhook(ends.map(settlementOf))
      const expected = WEBHOOKS.flatMap((webhookId, webhook) => {
        const own = ends.filter((end) => end.webhook === webhook)
        return own.length === 0 ? [] : [{ workspaceId: WORKSPACE, webhookId, ...expectedOf(own) }]
      })
      assert.deepEqual(
        counts,
        expected.toSorted((a, b) => (a.webhookId < b.webhookId ? -1 : 1)),
      )
    }),
    { numRuns: rounds(150, 500) },
  )
})

/** Computes the same differently: the failures after the latest success, and the latest of each kind. */
function expectedOf(ends: readonly End[]) {
  const timesOf = (...kinds: End['kind'][]) =>
    ends.filter(({ kind }) => kinds.includes(kind)).map(({ endedAtMs }) => endedAtMs)
  const dateOf = (ms: number) => (Number.isFinite(ms) ? new Date(ms) : null)
  const successAtMs = Math.max(...timesOf('good'))
  const failures = timesOf('bad', 'last')
  const since = failures.filter((ms) => ms > successAtMs)
  return {
    failures: since.length,
    failingSince: dateOf(Math.min(...since)),
    successAt: dateOf(successAtMs),
    failureAt: dateOf(Math.max(...failures)),
  }
}

test('a delivery that could not be sent does not count as a failure of the receiver', () => {
  const [count] = countByWebhook([settlementOf({ webhook: 0, kind: 'unsent', endedAtMs: 5 })])
  assert.deepEqual(count, {
    workspaceId: WORKSPACE,
    webhookId: WEBHOOKS[0],
    failures: 0,
    failingSince: null,
    successAt: null,
    failureAt: null,
  })
})
