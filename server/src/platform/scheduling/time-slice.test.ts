import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TimeSlice } from './time-slice.ts'

test('an owner with many requests delays the slices of another by at most one', async () => {
  const served: string[] = []
  const take = async (owner: string) => {
    const slice = new TimeSlice(owner)
    for (let slices = 0; slices < 3; slices += 1) {
      await slice.next()
      served.push(owner)
    }
  }
  const busy = Array.from({ length: 50 }, () => take('busy'))
  await take('other')
  assert(served.length <= 8, `${served.length} slices until the other had its three`)
  await Promise.all(busy)
  assert.equal(served.length, 153)
})
