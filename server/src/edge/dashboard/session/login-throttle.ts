import { ApiError } from '../../../errors.ts'
import type { Clock } from '../../../platform/clock.ts'
import { parseAddress } from '../../../tenancy/allowlist.ts'
import { type Rate, TokenBuckets } from '../../auth/token-bucket.ts'

const NAMES_MAX = 20_000
const MINUTE = 1 / 60

/**
 * How often something may be tried, by whom. An account has a bucket for each address and one for
 * all: a single stranger uses up his own and leaves the owner's alone, and many of them together get
 * no further than the second. An account that does not exist has the same ones.
 */
export const THROTTLES = {
  login: {
    address: { perSecond: 30 * MINUTE, capacity: 50, cost: 1 },
    accountFromAddress: { perSecond: MINUTE, capacity: 10, cost: 1 },
    account: { perSecond: 2 * MINUTE, capacity: 30, cost: 1 },
  },
  // No more in an hour than links that are kept.
  reset: {
    address: { perSecond: MINUTE, capacity: 20, cost: 1 },
    accountFromAddress: { perSecond: MINUTE / 30, capacity: 3, cost: 1 },
    account: { perSecond: MINUTE / 30, capacity: 3, cost: 1 },
  },
  link: { address: { perSecond: 60 * MINUTE, capacity: 60, cost: 1 } },
} as const satisfies Record<string, { address: Rate; accountFromAddress?: Rate; account?: Rate }>

type Matter = keyof typeof THROTTLES
type Attempt = { address: string; account?: string }

export class LoginThrottle {
  readonly #isOn: boolean
  readonly #buckets: TokenBuckets

  constructor({ clock, hasRateLimits }: { clock: Clock; hasRateLimits: boolean }) {
    this.#isOn = hasRateLimits
    this.#buckets = new TokenBuckets({ clock, bucketsMax: NAMES_MAX })
  }

  /** Counts the attempt before anything is looked up, so that a refusal says nothing of an account. */
  admit(matter: Matter, attempt: Attempt): void {
    if (!this.#isOn) return
    for (const [name, rate] of bucketsOf(matter, attempt)) {
      const { isAllowed, retryAfterSeconds } = this.#buckets.take(name, rate)
      if (isAllowed) continue
      throw new ApiError('rate_limited', {
        message: `Too many attempts. Try again in ${inWords(retryAfterSeconds)}.`,
        retryAfterSeconds,
      })
    }
  }

  /** Only failures count. */
  forgive(matter: Matter, attempt: Attempt): void {
    for (const [name, rate] of bucketsOf(matter, attempt)) this.#buckets.giveBack(name, rate)
  }
}

function bucketsOf(matter: Matter, { address, account }: Attempt): [name: string, rate: Rate][] {
  const rates: { address: Rate; accountFromAddress?: Rate; account?: Rate } = THROTTLES[matter]
  const network = networkOf(address)
  const buckets: [string, Rate][] = [[`${matter} ${network}`, rates.address]]
  if (account !== undefined && rates.accountFromAddress && rates.account) {
    const name = account.toLowerCase()
    buckets.push([`${matter} ${network} ${name}`, rates.accountFromAddress])
    buckets.push([`${matter} * ${name}`, rates.account])
  }
  return buckets
}

/** Whoever has one IPv6 address has the 2^64 beside it as well. */
function networkOf(address: string): string {
  const parsed = parseAddress(address)
  if (parsed?.kind() !== 'ipv6') return address
  return parsed.toNormalizedString().split(':').slice(0, 4).join(':')
}

function inWords(seconds: number): string {
  if (seconds < 120) return `${seconds} seconds`
  return `${Math.ceil(seconds / 60)} minutes`
}
