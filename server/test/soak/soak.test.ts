import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rounds } from '../harness/timing/fault-rounds.ts'
import type { FaultKind } from './faults.ts'
import { describeSoak } from './soak-report.ts'
import { runSoak } from './soak.ts'

/** `npm test` injects the first two. Each of the others has a test in server/test/fault. */
const FAULTS: FaultKind[] = [
  'kill the service',
  'cut client connections',
  'kill PostgreSQL',
  'step the clock back',
]

test('a short soak test with faults loses, duplicates and leaks nothing', async (t) => {
  const result = await runSoak({
    minutes: rounds(0.15, 0.3),
    seed: 7,
    eventsPerSecond: 100,
    faults: FAULTS.slice(0, rounds(2, FAULTS.length)),
    onProgress: (line) => t.diagnostic(line),
  })
  const failed = result.verdicts.filter(({ failureCount }) => failureCount > 0)
  assert.deepEqual(failed, [], describeSoak(result))
  assert(result.faults.length > 0, 'a fault was injected')
  assert(result.eventsStored > 50, 'events were stored')
})
