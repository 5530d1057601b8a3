import type { BackgroundQueue } from '../../../platform/scheduling/background-queue.ts'
import type { Clock, MonotonicClock } from '../../../platform/time/clock.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { Mailer } from '../../../platform/mailer.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { HashingQueue } from '../../../tenancy/sign-in/hashing-queue.ts'
import { networkOf, siteOf } from '../client-address.ts'
import { startLoginFailures } from './login-failures.ts'
import { LoginThrottle } from './login-throttle.ts'
import { RecentNames } from './recent-names.ts'
import { type ResetRequest, startResetRequests } from './reset-requests.ts'
import { startThrottledLogins } from './throttled-logins.ts'

/** At about 15 hashes per second, the 32 waiting callers get a response within about two seconds. */
const HASHING = { runningMax: 1, waitingMax: 32 } as const

const NETWORKS_MAX = 10_000

/** The state that sign-in keeps between requests. */
export class LoginGuard implements AsyncDisposable {
  readonly throttle: LoginThrottle
  readonly #hashing = new HashingQueue(HASHING)
  /** Networks from which members have signed in. */
  readonly #knownNetworks = new RecentNames({ max: NETWORKS_MAX })
  readonly failures: ReturnType<typeof startLoginFailures>
  readonly throttled: ReturnType<typeof startThrottledLogins>
  readonly resets: BackgroundQueue<ResetRequest>

  constructor(parts: {
    db: Queryable
    clock: Clock
    monotonic: MonotonicClock
    logger: Logger
    mailer: Mailer
    hasRateLimits: boolean
  }) {
    this.throttle = new LoginThrottle({ ...parts, clock: parts.monotonic })
    this.failures = startLoginFailures(parts)
    this.throttled = startThrottledLogins(parts)
    this.resets = startResetRequests(parts)
  }

  /**
   * Runs `work`, which hashes a password, when it is the caller's turn. Throws `overloaded` if too many wait.
   * `account` is the email address as sent, so a refusal doesn't reveal whether it has an account. For the
   * same reason, the queue prefers known networks, not known accounts.
   */
  async hash<T>(
    { address, account }: { address: string; account: string },
    work: () => Promise<T>,
  ): Promise<T> {
    const owners = [
      `site ${siteOf(address)}`,
      `network ${networkOf(address)}`,
      `account ${account.toLowerCase()}`,
    ]
    return await this.#hashing.run(owners, work, {
      isKnown: this.isKnownNetwork(address),
    })
  }

  /** Call after a member signs in. */
  noteSignIn(address: string): void {
    this.#knownNetworks.add(networkOf(address))
  }

  /** Whether a member has signed in from there on this node. */
  isKnownNetwork(address: string): boolean {
    return this.#knownNetworks.has(networkOf(address))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.resets[Symbol.asyncDispose]()
    const reports = [this.failures, this.throttled]
    await Promise.all(reports.map((report) => report[Symbol.asyncDispose]()))
  }
}
