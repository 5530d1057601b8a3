import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeSoak } from './soak-report.ts'
import { runSoak } from './soak.ts'

test('a short soak test with faults loses, duplicates and leaks nothing', async (t) => {
  const result = await runSoak({
    minutes: 0.3,
    seed: 7,
    eventsPerSecond: 100,
    faults: [
      'kill the service',
      'kill PostgreSQL',
      'step the clock back',
      'cut client connections',
    ],
    onProgress: (line) => t.diagnostic(line),
  })
  const failed = result.verdicts.filter(({ failureCount }) => failureCount > 0)
  assert.deepEqual(failed, [], describeSoak(result))
  assert(result.faults.length > 0, 'a fault was injected')
  assert(result.eventsStored > 50, 'events were stored')
})
