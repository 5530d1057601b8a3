import { ApiError } from '../../../errors.ts'
import type { MonotonicClock } from '../../../platform/time/clock.ts'
import { networkOf } from '../client-address.ts'
import type { Hook } from '../require-key.ts'
import { KnownNetworks } from './known-networks.ts'
import { type SlotRate, TokenSlots } from '../token-slots.ts'

const MINUTE = 1 / 60

/**
 * Rate limits for attempts. An account has a bucket per address and one for all addresses together. A single
 * attacker uses up their own bucket and doesn't affect the owner's, and many attackers together can't exceed
 * the shared one. Accounts that don't exist have the same limits. A network from which the account has signed in
 * doesn't use the shared bucket, so that attackers elsewhere can't lock the owner out.
 *
 * Worst case for logins: only a password that is really checked uses up a token, and a node checks about 15
 * per second at full load. An attacker who takes all of these checks, from any number of addresses, keeps at
 * most 450 of the 65,536 account slots empty, because each gains two tokens per minute. Then one in 140
 * uninvolved members shares a slot with such an account and has to wait. No account can be guessed faster
 * than its bucket allows. Reset requests are cheap, so a few thousand networks can empty all of their slots.
 * Links that an administrator or the operator creates aren't limited here.
 */
const THROTTLES = {
  login: {
    address: { perSecond: 30 * MINUTE, capacity: 50 },
    accountFromAddress: { perSecond: MINUTE, capacity: 10 },
    account: { perSecond: 2 * MINUTE, capacity: 30 },
  },
  // At most five per hour from unknown networks, which is the number of reset links that are kept.
  reset: {
    address: { perSecond: MINUTE, capacity: 20 },
    accountFromAddress: { perSecond: MINUTE / 30, capacity: 3 },
    account: { perSecond: MINUTE / 30, capacity: 3 },
  },
  link: { address: { perSecond: 60 * MINUTE, capacity: 60 } },
  // Each sign-in at the identity provider takes a start and a return.
  oidcStart: { address: { perSecond: 30 * MINUTE, capacity: 50 } },
  oidcReturn: { address: { perSecond: 30 * MINUTE, capacity: 50 } },
  // A constant, which needs no limit.
  signInOptions: {},
  challenge: { address: { perSecond: 30 * MINUTE, capacity: 50 } },
  // Only a caller with the password gets here. At any time, three of a million codes are right, so an attacker
  // who tries one every 15 minutes for a year finds one with a chance of 10%. The audit log shows each try.
  code: {
    accountFromAddress: { perSecond: MINUTE / 15, capacity: 5 },
    account: { perSecond: MINUTE / 15, capacity: 10 },
  },
} as const satisfies Record<string, Partial<Record<Counted, SlotRate>>>

type Counted = 'address' | 'accountFromAddress' | 'account'
export type AttemptKind = keyof typeof THROTTLES
type Attempt = { address: string; account?: string }
type Bucket = { slots: TokenSlots; name: string }

export class LoginThrottle {
  readonly #isOn: boolean
  readonly #slots: Record<AttemptKind, ReadonlyMap<Counted, TokenSlots>>
  readonly #known = new KnownNetworks()

  constructor({ clock, hasRateLimits }: { clock: MonotonicClock; hasRateLimits: boolean }) {
    this.#isOn = hasRateLimits
    this.#slots = {
      login: slotsOf(clock, THROTTLES.login),
      reset: slotsOf(clock, THROTTLES.reset),
      link: slotsOf(clock, THROTTLES.link),
      oidcStart: slotsOf(clock, THROTTLES.oidcStart),
      oidcReturn: slotsOf(clock, THROTTLES.oidcReturn),
      signInOptions: slotsOf(clock, THROTTLES.signInOptions),
      challenge: slotsOf(clock, THROTTLES.challenge),
      code: slotsOf(clock, THROTTLES.code),
    }
  }

  /**
   * Takes a token for the caller's address before the body is read, so that a flood costs no parsing. A
   * refused body counts as a failed attempt.
   */
  byAddress(kind: AttemptKind): Hook {
    return async ({ clientAddress: address }) => this.#take(this.#addressBuckets(kind, { address }))
  }

  /** For routes without `byAddress`. */
  async run<T>(kind: AttemptKind, attempt: Attempt, work: () => Promise<T>): Promise<T> {
    this.#take(this.#addressBuckets(kind, attempt))
    return await this.runAdmitted(kind, attempt, work)
  }

  /**
   * For an attempt whose address was admitted. Counts only the caller's mistakes: neither successes nor
   * failures of the service, such as a full login queue. A reset request and the start of a
   * sign-in at the identity provider can't be wrong, so each one counts.
   *
   * The account is admitted before anything is looked up, so that a refusal reveals nothing about it. If
   * one bucket refuses, the others lose no token.
   */
  async runAdmitted<T>(kind: AttemptKind, attempt: Attempt, work: () => Promise<T>): Promise<T> {
    const byAddress = this.#addressBuckets(kind, attempt)
    const byAccount = this.#accountBuckets(kind, attempt)
    this.#take(byAccount, byAddress)
    const result = await this.#count(kind, [...byAddress, ...byAccount], work)
    if (kind === 'login') this.#known.add(attempt)
    return result
  }

  /** Takes a token from every bucket or from none: a refusal returns the tokens taken before it. */
  #take(buckets: readonly Bucket[], takenBefore: readonly Bucket[] = []): void {
    if (!this.#isOn) return
    const taken = [...takenBefore]
    for (const bucket of buckets) {
      const waitMs = bucket.slots.take(bucket.name)
      if (waitMs > 0) {
        refund(taken)
        throw tooMany(Math.ceil(waitMs / 1_000))
      }
      taken.push(bucket)
    }
  }

  async #count<T>(kind: AttemptKind, taken: readonly Bucket[], work: () => Promise<T>): Promise<T> {
    let isCounted = kind === 'reset' || kind === 'oidcStart'
    try {
      return await work()
    } catch (error) {
      isCounted = error instanceof ApiError && error.status < 500
      throw error
    } finally {
      if (!isCounted && this.#isOn) refund(taken)
    }
  }

  #addressBuckets(kind: AttemptKind, { address }: Attempt): Bucket[] {
    return this.#bucketOf(kind, 'address', networkOf(address))
  }

  #accountBuckets(kind: AttemptKind, attempt: Attempt): Bucket[] {
    if (attempt.account === undefined) return []
    const pair = pairOf(attempt)
    const own = this.#bucketOf(kind, 'accountFromAddress', pair)
    if (kind !== 'code' && this.#known.has(attempt)) return own
    return [...own, ...this.#bucketOf(kind, 'account', attempt.account.toLowerCase())]
  }

  #bucketOf(kind: AttemptKind, counted: Counted, name: string): Bucket[] {
    const slots = this.#slots[kind].get(counted)
    return slots ? [{ slots, name }] : []
  }
}

function pairOf({ address, account = '' }: Attempt): string {
  return `${networkOf(address)} ${account.toLowerCase()}`
}

function slotsOf(
  clock: MonotonicClock,
  rates: Partial<Record<Counted, SlotRate>>,
): ReadonlyMap<Counted, TokenSlots> {
  const slots = new Map<Counted, TokenSlots>()
  for (const counted of ['address', 'accountFromAddress', 'account'] as const) {
    const rate = rates[counted]
    if (rate) slots.set(counted, new TokenSlots(clock, rate))
  }
  return slots
}

function refund(buckets: readonly Bucket[]): void {
  for (const { slots, name } of buckets) slots.refund(name)
}

function tooMany(retryAfterSeconds: number): ApiError {
  return new ApiError('rate_limited', {
    message: `Too many attempts. Try again in ${inText(retryAfterSeconds)}.`,
    retryAfterSeconds,
  })
}

function inText(seconds: number): string {
  if (seconds < 120) return `${seconds} seconds`
  return `${Math.ceil(seconds / 60)} minutes`
}
