import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import { eventRecordJson } from '../../ledger/event-record.ts'
import type { FeedWaiters } from '../../outlet/feed/feed-waiters.ts'
import { type FeedReads, readFeed } from '../../outlet/feed/read-feed.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import {
  FairSemaphore,
  QueueFullError,
  type SemaphoreLimits,
} from '../../platform/scheduling/fair-semaphore.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { hotSinceMsOf } from '../../tenancy/plans.ts'
import { ArchiveReadLimiter } from '../archive-read-limiter.ts'
import { recheckKey } from '../auth/key-access.ts'
import type { CachedKey } from '../auth/key-cache.ts'
import type { KeyGuard } from '../auth/require-key.ts'
import type { ExportRouteDeps } from '../export/export-resource.ts'
import { disconnectSignal } from '../http/disconnect-signal.ts'
import type { RequestSlots } from '../http/request-slots.ts'
import { joinRecords } from '../page-json.ts'
import { getKeyWorkspace } from '../workspace-resource.ts'

export type FeedDeps = Pick<
  ExportRouteDeps,
  'db' | 'clock' | 'exports' | 'coldCache' | 'keyAccess'
> & { keyGuard: KeyGuard; slots: RequestSlots; feedWaiters: FeedWaiters }

/**
 * Pages that are read or serialized at once. A page is read with several statements and has up to 2 MB, so
 * without this, the pages of all requests that wait for a slot would be in memory. One event wakes every
 * waiting request of a company, and all of them wait here.
 */
const PAGES: SemaphoreLimits = {
  permitsMax: 16,
  permitsPerCompanyMax: 4,
  waitingMax: 2_000,
  waitingPerCompanyMax: 1_000,
  waitMsMax: 10_000,
}

type FeedRange = {
  /** The workspace in the path. */
  named: string
  after: number
  limit: number
  waitMs: number
}

type FeedCall = {
  request: FastifyRequest
  /** Aborts when the client disconnects. */
  disconnected: AbortSignal
}

/** The records of a page, and the `after` that continues behind them. */
type FeedPage = { records: string; next: number }

/** Answers the feed requests of a node. */
export class FeedFollower {
  readonly #deps: FeedDeps
  readonly #pages = new FairSemaphore(PAGES)
  readonly #archiveReads = new ArchiveReadLimiter()

  constructor(deps: FeedDeps) {
    this.#deps = deps
  }

  /** Reads the next page. If it is empty, waits for events and reads again. */
  follow(request: FastifyRequest, reply: FastifyReply, range: FeedRange): Promise<FeedPage> {
    const call = { request, disconnected: disconnectSignal(reply) }
    return withRowOwner(request.principal.companyId, () => this.#follow(call, range))
  }

  async #follow(call: FeedCall, { named, waitMs, ...range }: FeedRange): Promise<FeedPage> {
    const { feedWaiters, keyGuard } = this.#deps
    const { companyId, keyId } = call.request.principal
    const endsAtMs = performance.now() + waitMs
    const workspaceId = await this.#findWorkspace(call, named)
    using listener = feedWaiters.listen({ companyId, keyId, workspaceId })
    for (;;) {
      const page = await this.#readPage(call, { ...range, workspaceId })
      if (page.next > range.after || waitMs === 0) return page
      using access = this.#watchAccess(call, workspaceId)
      const left = { waitMs: endsAtMs - performance.now(), signal: access.signal }
      if (!(await feedWaiters.wait(listener, { afterSeq: range.after, ...left }))) return page
      await keyGuard.recheck(call.request)
    }
  }

  async #readPage(
    call: FeedCall,
    {
      workspaceId,
      after,
      limit,
    }: Pick<FeedRange, 'after' | 'limit'> & { workspaceId: WorkspaceId },
  ): Promise<FeedPage> {
    const { request, disconnected } = call
    const { companyId, keyId, plan } = request.principal
    using _page = await this.#pages.take(companyId, disconnected, keyId).catch(refuseFullQueue)
    const hotSinceMs = hotSinceMsOf(plan, this.#deps.clock())
    const reads = this.#readsOf(call)
    const events = await readFeed(reads, { workspaceId, after, limit, plan, hotSinceMs })
    const records = await joinRecords(events, eventRecordJson, companyId)
    return { records, next: events.at(-1)?.seq ?? after }
  }

  #readsOf(call: FeedCall): FeedReads {
    const { request, disconnected } = call
    const { exports, coldCache } = this.#deps
    const { companyId, keyId: callerId } = request.principal
    const { database, archive, timeouts } = exports
    return {
      database,
      archive,
      cache: coldCache,
      acquire: () => this.#takeSlot(call),
      acquireArchiveRead: () => this.#archiveReads.take({ companyId, callerId }, disconnected),
      checkMs: timeouts.checkMs,
      signal: disconnected,
    }
  }

  async #takeSlot({ request, disconnected }: FeedCall): Promise<Disposable> {
    disconnected.throwIfAborted()
    const { companyId, keyId } = request.principal
    return await this.#deps.slots.take(companyId, disconnected, keyId)
  }

  async #findWorkspace(call: FeedCall, named: string): Promise<WorkspaceId> {
    using _slot = await this.#takeSlot(call)
    return (await getKeyWorkspace(this.#deps.db, call.request.principal, named)).id
  }

  /** The signal aborts with what the next call would get when the key loses its access, until disposed of. */
  #watchAccess(
    { request, disconnected }: FeedCall,
    workspaceId: WorkspaceId,
  ): Disposable & { signal: AbortSignal } {
    const { clock, keyAccess } = this.#deps
    const { key, clientAddress: address, gate } = request
    const lost = new AbortController()
    const check = (current: CachedKey | null) => {
      const { workspaceId: own } = recheckKey(current, { address, gate, nowMs: clock() })
      if (own !== null && own !== workspaceId) throw new ApiError('not_found')
    }
    const watch = keyAccess.watch(key.kid, check, (reason) => lost.abort(reason))
    return {
      signal: AbortSignal.any([disconnected, lost.signal]),
      [Symbol.dispose]: () => watch[Symbol.dispose](),
    }
  }
}

function refuseFullQueue(error: unknown): never {
  if (!(error instanceof QueueFullError)) throw error
  throw new ApiError('overloaded', {
    message:
      'Too many feed requests are in progress. Retry after the delay in the Retry-After header.',
    cause: error,
  })
}
