import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/harness/timing/clock.ts'
import { UnknownCredentials } from './unknown-credentials.ts'

const LOOKUPS_MAX = 4

async function startLookups() {
  const { clock } = manualClock(0)
  const timeoutFactor = 0.1
  const credentials = new UnknownCredentials({ clock, hasRateLimits: true, timeoutFactor })
  const pending: (() => void)[] = []
  const lookUp = (nth: number) =>
    credentials.lookUp(`192.0.2.${nth}`, () => new Promise<void>((end) => pending.push(end)))
  const running = Array.from({ length: LOOKUPS_MAX }, (_, nth) => lookUp(nth))
  await new Promise(setImmediate)
  return { pending, running, lookUp }
}

test('a lookup that waits too long fails as unavailable if the database doesn’t respond', async () => {
  const { pending, running, lookUp } = await startLookups()
  await assert.rejects(lookUp(9), { code: 'unavailable' })
  for (const end of pending) end()
  await Promise.all(running)
})

test('a lookup that waits too long fails as overloaded if others had their turn', async () => {
  const { pending, running, lookUp } = await startLookups()
  const [first, second] = [lookUp(8), lookUp(9)]
  pending.shift()?.()
  await assert.rejects(second, { code: 'overloaded' })
  for (const end of pending) end()
  await Promise.all([...running, first])
})
