import assert from 'node:assert/strict'
import type { Setup } from './setup.ts'

/**
 * Verifies that every healthy webhook received all its acknowledged events, in a sequence without gaps.
 */
export async function verifyArrived({ owed, receiver }: Setup): Promise<string> {
  let arrived = 0
  let duplicates = 0
  for (const [name, ids] of owed) {
    const summary = await receiver.awaitEvents(name, ids.length)
    const arrivals = await receiver.arrivals(name)
    const missing = ids.filter((id) => !arrivals.has(id))
    assert.deepEqual(missing, [], `${name}: acknowledged events did not arrive`)
    assert.equal(arrivals.size, ids.length, `${name}: events arrived that were not acknowledged`)
    assert.equal(summary.sequenceGaps, 0, `${name}: the sequence has gaps`)
    arrived += ids.length
    duplicates += summary.duplicates
  }
  return `verified: ${arrived} deliveries to ${owed.size} healthy webhooks arrived, ${duplicates} of them again, without a gap`
}
