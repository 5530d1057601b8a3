import type { Clock, MonotonicClock } from '../../../platform/time/clock.ts'
import type { Logger } from '../../../platform/logger.ts'
import { Loop } from '../../../platform/scheduling/loop.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Account } from '../../../tenancy/user-store.ts'
import { audited } from '../../dashboard/member-caller.ts'

type Failure = { account: Account | null; address: string; traceId: string }
/** The latest failure, and the number of failures since the last report. */
type FailureRecord = Failure & { attempts: number; writtenAtMs: number }

const INTERVAL_MS = 1_000
/** An account gets at most one entry in this time. */
const WRITE_EVERY_MS = 60_000
const NOTES_MAX = 10_000

/**
 * Counts failed logins in memory and reports them once per minute. Failures of an account go to its company's
 * audit log. Failures without an account go to the service log, by address. Nothing is written during the
 * request, so response times don't reveal whether the account exists.
 */
export class LoginFailures implements AsyncDisposable {
  readonly #notes = new Map<string, FailureRecord>()
  readonly #db: Queryable
  readonly #clock: Clock
  readonly #monotonic: MonotonicClock
  readonly #logger: Logger
  readonly #loop: Loop
  #uncounted = 0

  constructor({
    db,
    clock,
    monotonic,
    logger,
  }: {
    db: Queryable
    clock: Clock
    monotonic: MonotonicClock
    logger: Logger
  }) {
    this.#db = db
    this.#clock = clock
    this.#monotonic = monotonic
    this.#logger = logger
    this.#loop = new Loop({
      name: 'login-failures',
      everyMs: INTERVAL_MS,
      logger,
      run: (signal) => this.#report(this.#monotonic() - WRITE_EVERY_MS, signal),
    })
  }

  note(failure: Failure): void {
    const key = failure.account?.userId ?? failure.address
    const known = this.#notes.get(key)
    if (!known && this.#notes.size >= NOTES_MAX) {
      this.#uncounted += 1
      return
    }
    this.#notes.set(key, {
      ...failure,
      attempts: (known?.attempts ?? 0) + 1,
      writtenAtMs: known?.writtenAtMs ?? Number.NEGATIVE_INFINITY,
    })
  }

  async #report(reportedBeforeMs: number, signal?: AbortSignal): Promise<void> {
    for (const [key, { writtenAtMs, attempts }] of this.#notes) {
      if (signal?.aborted) return
      if (writtenAtMs > reportedBeforeMs) continue
      if (attempts === 0) this.#notes.delete(key)
      else await this.#reportOne(key)
    }
    if (this.#uncounted > 0) {
      this.#logger.warn({ event: 'login.uncounted', attempts: this.#uncounted })
      this.#uncounted = 0
    }
  }

  async #reportOne(key: string): Promise<void> {
    const note = this.#notes.get(key)
    if (!note) return
    const { account, address, traceId, attempts } = note
    if (account === null) this.#logger.info({ event: 'login.refused', address, attempts, traceId })
    else await this.#write(account, { address, traceId, attempts })
    // Failures during the write count for the next report.
    const now = this.#notes.get(key) ?? note
    this.#notes.set(key, {
      ...now,
      attempts: now.attempts - attempts,
      writtenAtMs: this.#monotonic(),
    })
  }

  /** The caller hasn't proved to be the member, so the member is the resource and the actor has no user id. */
  async #write(
    { companyId, userId, email }: Account,
    { address, traceId, attempts }: { address: string; traceId: string; attempts: number },
  ): Promise<void> {
    const deps = { db: this.#db, clock: this.#clock }
    const actor = { companyId, userId: null, email, role: null, address, traceId }
    await audited(deps, actor, async (_trx, note) => {
      note({
        action: 'LOGIN_FAILED',
        resource: { type: 'user', id: userId },
        metadata: { attempts },
      })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
    try {
      await this.#report(Number.POSITIVE_INFINITY)
    } catch (error) {
      // The service must be able to stop even if its database is down.
      this.#logger.warn({ event: 'login-failures.lost', err: error })
    }
  }
}
