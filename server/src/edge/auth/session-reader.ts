import { ApiError } from '../../errors.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import { FairSemaphore, QueueFullError } from '../../platform/scheduling/fair-semaphore.ts'
import type { SeenViewer, SessionToken } from '../../tenancy/sign-in/session-store.ts'
import type { Viewer } from '../../tenancy/viewer.ts'

type Found = ReadonlyMap<SessionToken, SeenViewer>

type SessionStore = {
  /** The viewers of the tokens whose sessions are valid. */
  list: (tokens: readonly SessionToken[]) => Promise<Found>
  hasRecentUse: (viewer: SeenViewer) => boolean
  noteUse: (viewer: SeenViewer) => Promise<void>
}

type Waiting = PromiseWithResolvers<SeenViewer | null> & { viewer: Promise<Viewer | null> }

/** Out of the six connections that keys, sessions and readiness checks share. */
const READS_MAX = 2
const SESSIONS_PER_READ_MAX = 200
/** Timeout for the wait, the read and the update of the last use together. */
const READ_MS_MAX = 900
/** A request can wait for the previous read and its own. */
const WAITS = 2
/** The use of a session is noted once per minute. If too many wait, its next request does it. */
const NOTES = {
  permitsMax: 2,
  permitsPerCompanyMax: 1,
  waitingMax: 500,
  waitingPerCompanyMax: 50,
  waitMsMax: 500,
}

/**
 * Reads sessions from the database, with at most two statements at once on the node, so that a flood
 * of requests with a session leaves connections for keys and readiness.
 *
 * Requests that arrive while both statements run share the next one. A request never shares a statement
 * that started before it arrived: that result could miss a sign-out or a changed role.
 */
export class SessionReader {
  readonly #store: SessionStore
  /** Tokens that wait for a read, in order of arrival. */
  readonly #waiting = new Map<SessionToken, Waiting>()
  readonly #notes = new FairSemaphore(NOTES)
  readonly #readMsMax: number
  #reads = 0

  /** `timeoutFactor` multiplies the timeout. */
  constructor(store: SessionStore, timeoutFactor = 1) {
    this.#store = store
    this.#readMsMax = READ_MS_MAX * timeoutFactor
  }

  /** The cookie's owner, or null if the cookie is unknown or its session has ended. Counts as a use. */
  async find(token: SessionToken): Promise<Viewer | null> {
    const waiting = this.#waiting.get(token) ?? this.#enqueue(token)
    if (this.#reads < READS_MAX) void this.#readAll()
    return await withDeadline(waiting.viewer, {
      timeoutMs: this.#readMsMax,
      late: () => new ApiError('unavailable'),
      waits: WAITS,
    })
  }

  #enqueue(token: SessionToken): Waiting {
    const read = Promise.withResolvers<SeenViewer | null>()
    const waiting = { ...read, viewer: this.#noted(read.promise) }
    this.#waiting.set(token, waiting)
    return waiting
  }

  async #readAll(): Promise<void> {
    this.#reads += 1
    while (this.#waiting.size > 0) await this.#readNext()
    // In the same turn as the check above, so that no request is left waiting.
    this.#reads -= 1
  }

  async #readNext(): Promise<void> {
    const batch = this.#waiting.entries().take(SESSIONS_PER_READ_MAX).toArray()
    for (const [token] of batch) this.#waiting.delete(token)
    try {
      const viewers = await this.#store.list(batch.map(([token]) => token))
      for (const [token, { resolve }] of batch) resolve(viewers.get(token) ?? null)
    } catch (error) {
      for (const [, { reject }] of batch) reject(error)
    }
  }

  async #noted(read: Promise<SeenViewer | null>): Promise<Viewer | null> {
    const seen = await read
    if (!seen) return null
    if (!this.#store.hasRecentUse(seen)) await this.#noteUse(seen)
    return seen
  }

  async #noteUse(seen: SeenViewer): Promise<void> {
    try {
      using _turn = await this.#notes.take(seen.companyId)
      await this.#store.noteUse(seen)
    } catch (error) {
      if (!(error instanceof QueueFullError)) throw error
    }
  }
}
