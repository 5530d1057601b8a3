import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { ApiError } from '../../errors.ts'
import {
  FairSemaphore,
  type SemaphoreLimits,
  QueueFullError,
} from '../../platform/scheduling/fair-semaphore.ts'
import type { CompanyId } from '../../platform/id.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { withSlot } from '../../platform/scheduling/slot-scope.ts'
import { ArchiveReadLimiter } from '../archive-read-limiter.ts'
import { disconnectSignal } from './disconnect-signal.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True if requests of the route need no slot, because something else limits their database use. */
    hasOwnLimits?: boolean
    /** Whether a request searches events, which can take long, so it needs a permit to search and no slot. */
    isSearch?: (request: FastifyRequest) => boolean
  }
}

/**
 * Out of the node's 20 connections. A company's requests can all wait for the same lock, so its share must
 * leave connections for other companies and for background work. Four is also how many pages of 2 MB can be
 * decoded in one turn of the event loop without delaying other requests much.
 */
const LIMITS = {
  permitsMax: 10,
  permitsPerCompanyMax: 4,
  waitingMax: 1_000,
  waitingPerCompanyMax: 200,
  waitMsMax: 10_000,
}
/** A company's changes lock it, so they run one after another. */
const CHANGE_LIMITS = { ...LIMITS, permitsMax: Number.POSITIVE_INFINITY, permitsPerCompanyMax: 1 }
const RETRY_SECONDS = 1

/**
 * Limits how many requests of a company use the database at once on a node. Further requests wait. Companies
 * take turns, and so do the keys and members of a company.
 */
export class RequestSlots {
  readonly #semaphore: FairSemaphore
  readonly #archiveReads = new ArchiveReadLimiter()
  readonly #changes = new FairSemaphore(CHANGE_LIMITS)

  constructor(limits: Partial<SemaphoreLimits> = {}) {
    this.#semaphore = new FairSemaphore({ ...LIMITS, ...limits })
  }

  /** Whether requests are waiting for a slot. */
  get isCrowded(): boolean {
    return this.#semaphore.isCrowded
  }

  /**
   * A caller that already has a slot must not wait for another. The callers of a company take turns. A client
   * that disconnects stops waiting.
   */
  async take(companyId: CompanyId, client: Client | null, caller?: string): Promise<Disposable> {
    const free = this.#semaphore.tryTake(companyId)
    if (free) return free
    return await waitFor(this.#semaphore, companyId, client && signalOf(client), caller)
  }

  /** Takes another slot for a request that has one, or returns null if none is free. */
  tryTake(companyId: CompanyId): Disposable | null {
    return this.#semaphore.tryTake(companyId)
  }

  /** For a request that learns its company only in its handler, such as a login, and so has no slot yet. */
  async run<T>(companyId: CompanyId, work: () => Promise<T>): Promise<T> {
    using _slot = await this.take(companyId, null)
    return await work()
  }

  /** The work has a slot, except while it waits in a function of `slot-scope.ts`. */
  async hold<T>(
    { companyId, callerId = companyId }: SlotCaller,
    client: Client,
    work: () => Promise<T>,
  ): Promise<T> {
    let slot: Disposable | null = await this.take(companyId, client, callerId)
    let isOver = false
    const release = () => {
      slot?.[Symbol.dispose]()
      slot = null
    }
    const retake = async () => {
      // Work that has started ends even if its client disconnects.
      const again = await this.take(companyId, null, callerId)
      if (isOver || slot !== null) again[Symbol.dispose]()
      else slot = again
    }
    const takeArchivePermit = () =>
      this.#archiveReads.take({ companyId, callerId }, signalOf(client))
    const tryTakeTurn = () => this.#changes.tryTake(companyId)
    const takeTurn = () => waitFor(this.#changes, companyId, signalOf(client), callerId)
    try {
      return await withSlot({ release, retake, takeArchivePermit, tryTakeTurn, takeTurn }, work)
    } finally {
      isOver = true
      release()
    }
  }
}

async function waitFor(
  semaphore: FairSemaphore,
  companyId: CompanyId,
  signal: AbortSignal | null,
  caller: string | undefined,
): Promise<Disposable> {
  try {
    return await semaphore.take(companyId, signal, caller)
  } catch (error) {
    if (!(error instanceof QueueFullError)) throw error
    throw new ApiError('overloaded', {
      message:
        'Too many requests from this company are in progress. Retry after the delay in the Retry-After header.',
      retryAfterSeconds: RETRY_SECONDS,
      cause: error,
    })
  }
}

/** The caller is a key or member. */
type SlotCaller = { companyId: CompanyId; callerId?: string | undefined }

/** Without a signal, the client is watched only while it waits. */
type Client = Pick<FastifyReply, 'raw'> | AbortSignal

function signalOf(client: Client): AbortSignal {
  return 'raw' in client ? disconnectSignal(client) : client
}

type SearchPermits = {
  take: (companyId: CompanyId, signal: AbortSignal | null) => Promise<Disposable>
}

/**
 * Makes every handler that knows its company wait for a slot. The slot lasts until the handler ends, even if
 * the client disconnects earlier, because the handler still uses its connection. A handler that waits for the
 * storage of the archive gives it up meanwhile. Call it before the routes are registered.
 */
export function limitHandlers(
  app: FastifyInstance,
  { slots, searches }: { slots: RequestSlots; searches: SearchPermits },
  afterWait: (request: FastifyRequest, reply: FastifyReply) => Promise<void>,
): void {
  const wrapped = new WeakSet<RouteOptions['handler']>()
  app.addHook('onRoute', (route) => {
    const { handler } = route
    // Fastify registers a HEAD route with the handler of its GET route.
    if (route.config?.hasOwnLimits === true || wrapped.has(handler)) return
    route.handler = async function limited(request, reply) {
      const companyId = companyOf(request)
      if (companyId === null) return await handler.call(this, request, reply)
      const handle = async () => {
        await afterWait(request, reply)
        return await withRowOwner(companyId, () => handler.call(this, request, reply))
      }
      if (route.config?.isSearch?.(request) !== true) {
        return await slots.hold({ companyId, callerId: callerOf(request) }, reply, handle)
      }
      using _permit = await searches.take(companyId, disconnectSignal(reply))
      return await handle()
    }
    wrapped.add(route.handler)
  })
}

function callerOf({ key, viewer }: Partial<FastifyRequest>): string | undefined {
  return key?.id ?? viewer?.userId
}

/** Null if the route needs neither a key nor a session. */
export function companyOf({ key, viewer }: Partial<FastifyRequest>): CompanyId | null {
  return key?.companyId ?? viewer?.companyId ?? null
}
