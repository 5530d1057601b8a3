import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { findAccount, insertUser } from '../../src/tenancy/member/user-store.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { logIn } from '../harness/sign-in/login.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_TRUSTED_PROXIES: '127.0.0.1' } })
const floods: Promise<unknown>[] = []
after(async () => {
  await Promise.all(floods)
  await annals[Symbol.asyncDispose]()
})

type Credentials = { email: string; password: string }
type Attempt = { credentials: Credentials; address: string }

const ACCOUNTS = 5
const VICTIM_LOGINS = process.env.FAULT_SECONDS === undefined ? 1 : 3
const WAITING_MAX = 32
const LATE_RESPONSES_MAX = 4

const attacker = await annals.createCompany({ plan: 'FREE' })
const accounts = await addAccounts(attacker, ACCOUNTS)
const victim = await annals.createCompany()
const MEMBER_ADDRESS = '203.0.113.1'
assert.equal((await logIn(annals, victim.user, from(MEMBER_ADDRESS))).status, 200)

/** Accounts with the password of the company's owner, who is the first of them. */
async function addAccounts({ company, user }: CreatedCompany, count: number) {
  const { db } = annals.app.database
  const owner = await findAccount(db, user.email)
  assert(owner)
  const added: Credentials[] = [user]
  while (added.length < count) {
    const id = newId<'user'>()
    const email = `${id}@example.com`
    const { passwordHash } = owner
    await insertUser(db, { id, companyId: company.id, email, passwordHash, role: 'VIEWER' })
    added.push({ email, password: user.password })
  }
  return added
}

type Flood = {
  /** Logins in progress at any time. */
  parallel: number
  attemptOf: (loop: number, nth: number) => Attempt
  /** After a refusal, instead of when a login has left the queue. */
  retriesAtOnce?: true
}

const FLOODS: readonly (Flood & {
  what: string
  /** Of the member. Another one unless given. */
  address?: string
  /** How many hashes of the flood a login can wait for: one that runs, and one of each owner. */
  overtakenMax: number
})[] = [
  {
    what: 'five accounts of another company sign in nine times at once from another address',
    parallel: ACCOUNTS * 9,
    attemptOf: (loop) => ({ credentials: accountOf(loop), address: '198.51.100.1' }),
    retriesAtOnce: true,
    overtakenMax: 2,
  },
  {
    what: 'five accounts of another company sign in nine times at once from the same address',
    parallel: ACCOUNTS * 9,
    attemptOf: (loop) => ({ credentials: accountOf(loop), address: '198.51.100.2' }),
    address: '198.51.100.2',
    overtakenMax: 1 + ACCOUNTS,
  },
  {
    what: 'five accounts of another company sign in from many networks',
    parallel: ACCOUNTS * 8,
    attemptOf: (loop) => ({ credentials: accountOf(loop), address: `198.18.0.${loop}` }),
    overtakenMax: 1 + ACCOUNTS,
  },
  {
    what: 'unknown accounts are tried from many networks of one IPv6 range',
    parallel: 40,
    attemptOf: (loop, nth) => ({
      credentials: { email: `unknown-${loop}-${nth}@example.com`, password: 'wrong horse' },
      address: `2001:db8:1:${((loop << 8) + (nth % 256)).toString(16)}::1`,
    }),
    overtakenMax: 2,
  },
  {
    // The member has signed in from that address before.
    what: 'unknown accounts are tried from more addresses than logins can wait',
    parallel: 40,
    attemptOf: (loop, nth) => ({
      credentials: { email: `unknown-${loop}-${nth}@example.com`, password: 'wrong horse' },
      address: `198.18.1.${loop}`,
    }),
    overtakenMax: 1 + WAITING_MAX,
  },
]

function accountOf(loop: number): Credentials {
  return accounts[loop % ACCOUNTS] ?? attacker.user
}

for (const { what, address = MEMBER_ADDRESS, overtakenMax, ...options } of FLOODS) {
  test(`a member signs in soon while ${what}`, async () => {
    const flood = startFlood(options)
    const overtaken: number[] = []
    try {
      await flood.isRefused()
      for (let nth = 0; nth < VICTIM_LOGINS; nth += 1) {
        const before = flood.hashed()
        const { status, text } = await logIn(annals, victim.user, from(address))
        assert.equal(status, 200, text)
        overtaken.push(flood.hashed() - before)
      }
    } finally {
      flood.stop()
    }
    // Responses to attempts hashed before the login can arrive during it.
    assert(
      Math.max(...overtaken) <= overtakenMax + LATE_RESPONSES_MAX,
      `waited for ${overtaken.join()} hashes`,
    )
  })
}

function from(address: string) {
  return { 'x-forwarded-for': address }
}

/**
 * Sends `parallel` logins at once, and the next one as soon as one gets a response. After a refusal, the next
 * one follows when a login has left the queue, unless the flood retries at once. So it stays full, and the
 * refusals take little CPU time.
 */
function startFlood({ parallel, attemptOf, retriesAtOnce }: Flood) {
  const over = new AbortController()
  const counts = { hashed: 0, refused: 0 }
  let left = Promise.withResolvers<void>()
  const send = async (_: unknown, loop: number) => {
    for (let nth = 0; !over.signal.aborted; nth += 1) {
      const { credentials, address } = attemptOf(loop, nth)
      const { status, text } = await logIn(annals, credentials, from(address))
      assert([200, 401, 429, 503].includes(status), text)
      if (status === 200 || status === 401) {
        counts.hashed += 1
        left.resolve()
        left = Promise.withResolvers()
      } else {
        counts.refused += 1
        // A stopped flood may have no other login left that ends this wait.
        if (over.signal.aborted) return
        if (!retriesAtOnce) await left.promise
      }
    }
  }
  floods.push(...Array.from({ length: parallel }, send))
  return {
    hashed: () => counts.hashed,
    /** Resolves when the queue has been full. */
    isRefused: () => eventually(() => assert(counts.refused > 0)),
    /** Requests that still wait get their response during the next test. */
    stop: () => {
      over.abort()
      left.resolve()
    },
  }
}
