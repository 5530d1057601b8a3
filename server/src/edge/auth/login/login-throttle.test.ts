import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../../test/harness/timing/clock.ts'
import { ApiError } from '../../../errors.ts'
import { LoginThrottle } from './login-throttle.ts'

const ACCOUNT = 'somebody@example.com'
const WRONG = new ApiError('not_signed_in')

function stillThrottle() {
  const { clock } = manualClock(0)
  return { throttle: new LoginThrottle({ clock, hasRateLimits: true }) }
}

async function outcomeOf(run: Promise<unknown>): Promise<string> {
  try {
    await run
    return 'passed'
  } catch (error) {
    return error instanceof ApiError ? error.code : 'error'
  }
}

async function tryLogin(throttle: LoginThrottle, address: string, end: Error | null) {
  return await outcomeOf(
    throttle.run('login', { address, account: ACCOUNT }, async () => {
      if (end) throw end
    }),
  )
}

const CASES: readonly [what: string, end: Error | null, isCounted: boolean][] = [
  ['a wrong password', WRONG, true],
  ['the right password', null, false],
  ['a full hashing queue', new ApiError('overloaded'), false],
  ['an unreachable database', new ApiError('unavailable'), false],
  ['an internal error', new Error('oops'), false],
]
for (const [what, end, isCounted] of CASES) {
  test(`${what} ${isCounted ? 'uses up' : 'does not use up'} attempts`, async () => {
    const { throttle } = stillThrottle()
    for (let tries = 0; tries < 100; tries += 1) await tryLogin(throttle, '192.0.2.1', end)
    const next = await tryLogin(throttle, '192.0.2.1', WRONG)
    assert.equal(next, isCounted ? 'rate_limited' : 'not_signed_in')
  })
}

test('attempts rejected by the account limit do not count against the address', async () => {
  const { throttle } = stillThrottle()
  for (let tries = 0; tries < 200; tries += 1) await tryLogin(throttle, '192.0.2.1', WRONG)
  const others: string[] = []
  for (let other = 0; other < 41; other += 1) {
    const attempt = { address: '192.0.2.1', account: `other-${other}@example.com` }
    others.push(await outcomeOf(throttle.run('login', attempt, () => Promise.reject(WRONG))))
  }
  // Ten of the address's fifty tokens went to the account that refused the other attempts.
  assert.deepEqual(others, [...Array.from({ length: 40 }, () => 'not_signed_in'), 'rate_limited'])
})

test('twenty thousand other accounts do not reset the limit of one account', async () => {
  const { throttle } = stillThrottle()
  for (let host = 0; host < 30; host += 1) await tryLogin(throttle, `198.18.0.${host}`, WRONG)
  for (let other = 0; other < 20_000; other += 1) {
    const address = `2001:db8:${(other >> 8).toString(16)}:${(other & 255).toString(16)}::1`
    const attempt = { address, account: `other-${other}@example.com` }
    await outcomeOf(throttle.run('login', attempt, () => Promise.reject(WRONG)))
  }
  assert.equal(await tryLogin(throttle, '198.18.1.1', WRONG), 'rate_limited')
})

test('attempts from elsewhere do not lock a member out of a network they have signed in from', async () => {
  const { throttle } = stillThrottle()
  const home = '192.0.2.1'
  assert.equal(await tryLogin(throttle, home, null), 'passed')
  for (let tries = 0; tries < 100; tries += 1) {
    await tryLogin(throttle, `198.18.0.${tries}`, WRONG)
  }
  assert.equal(await tryLogin(throttle, '198.18.1.1', null), 'rate_limited')
  assert.equal(await tryLogin(throttle, home, null), 'passed')
  // Nor out of a reset, and an attacker in the same network gets no further than before.
  const reset = { address: home, account: ACCOUNT }
  for (let tries = 0; tries < 3; tries += 1) {
    const attempt = { address: `198.18.0.${tries}`, account: ACCOUNT }
    await outcomeOf(throttle.run('reset', attempt, async () => {}))
  }
  assert.equal(await outcomeOf(throttle.run('reset', reset, async () => {})), 'passed')
  const outcomes: string[] = []
  for (let tries = 0; tries < 11; tries += 1) outcomes.push(await tryLogin(throttle, home, WRONG))
  assert.equal(outcomes.indexOf('rate_limited'), 10)
})

test('another account that signs in from many networks does not change what is known', async () => {
  const { throttle } = stillThrottle()
  await tryLogin(throttle, '192.0.2.1', null)
  for (let network = 0; network < 11_000; network += 1) {
    const address = `2001:db8:${(network >> 8).toString(16)}:${(network & 255).toString(16)}::1`
    const attempt = { address, account: 'other@example.com' }
    await throttle.run('login', attempt, async () => {})
  }
  for (let tries = 0; tries < 40; tries += 1) await tryLogin(throttle, `198.18.0.${tries}`, WRONG)
  assert.equal(await tryLogin(throttle, '192.0.2.1', null), 'passed')
})
