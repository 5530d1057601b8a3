import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CompanyShares } from './company-share.ts'

const KINDS = ['long', 'key', 'member'] as const
const EVERY_LIMIT = [8, 150, 1_950, 10_000]

/** Takes as much as possible, in turns. Returns how many were granted. */
function fill(shares: CompanyShares, companies: number, kinds: readonly (typeof KINDS)[number][]) {
  let taken = 0
  for (let before = -1; before < taken;) {
    before = taken
    for (let company = 0; company < companies; company += 1) {
      for (const kind of kinds) if (shares.take(`${company}`, kind)) taken += 1
    }
  }
  return taken
}

test('at every limit, one kind of request of a company gets a third of the connections, and all kinds three fifths', () => {
  for (const connectionsMax of EVERY_LIMIT) {
    for (const kind of KINDS) {
      const taken = fill(new CompanyShares({ connectionsMax }), 1, [kind])
      assert(Math.abs(taken - connectionsMax / 3) <= 1, `${taken} of ${connectionsMax}`)
    }
    const taken = fill(new CompanyShares({ connectionsMax }), 1, KINDS)
    assert(Math.abs(taken - (connectionsMax * 3) / 5) <= 2, `${taken} of ${connectionsMax}`)
  }
})

test('several companies leave connections, and a further company gets its share of these', () => {
  const shares = new CompanyShares({ connectionsMax: 150 })
  const taken = fill(shares, 10, KINDS)
  assert(taken < 150 - 8, `${taken}`)
  const further = Array.from({ length: 3 }, () => shares.take('further', 'key'))
  assert(further.every((release) => release !== null))
})

test('a request stops counting when it ends', () => {
  const shares = new CompanyShares({ connectionsMax: 8 })
  const [first, second, third, refused] = [1, 2, 3, 4].map(() => shares.take('a', 'key'))
  assert(first && second && third && refused === null)
  first()
  assert(shares.take('a', 'key'))
  assert.equal(shares.take('a', 'key'), null)
  assert(shares.take('a', 'member'), 'the other kinds have their own share')
  assert(shares.take('b', 'key'), 'and so do other companies')
})
