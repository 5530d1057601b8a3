import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, matchesFilter } from '../../ledger/event-filter.ts'
import { listChainRun } from '../../ledger/event-store.ts'
import type { CompanyId, UserId, WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/loop.ts'
import type { Queryable } from '../../platform/pg.ts'
import { listHeadSeqs } from './head-seq-store.ts'

const FOLLOWERS_MAX = 200
const FOLLOWERS_PER_USER_MAX = 5
/** A share, so that no company shuts out the others. */
const FOLLOWERS_PER_COMPANY_MAX = 50
/** Other nodes' commits are found by looking; those of this node wake it. */
const POLL_MS = 400
/** However often it is woken, it looks no more often. */
const LOOK_MS_MIN = 100
/** Few, because an event can be a quarter of a megabyte. */
const EVENTS_PER_READ = 100
/** A chain that gains more between two looks is too fast to be read along. */
const READS_PER_LOOK_MAX = 20
/** Who comes back after more events than these loads the page anew. */
const EVENTS_MISSED_MAX = 1_000

/** Up to where a follower has been told of each chain. */
export type Positions = Map<WorkspaceId, number>

export type Follower = {
  companyId: CompanyId
  userId: UserId
  filter: EventFilter
  positions: Positions
  /** One that matches; `positions` are at it. */
  onEvent: (event: SealedEvent) => void
  /** Some were left out: whoever wants them must ask for them. */
  onGap: () => void
}

/**
 * Tells followers of new events. One reader a node for all of them: each chain that somebody follows is
 * read once, from the follower that is furthest behind. While nobody follows, it asks nothing.
 */
export class LiveTail implements AsyncDisposable {
  readonly #db: Queryable
  readonly #followers = new Set<Follower>()
  readonly #loop: Loop
  #lookedAtMs = 0
  #timer: NodeJS.Timeout | null = null

  constructor({ db, logger }: { db: Queryable; logger: Logger }) {
    this.#db = db
    this.#loop = new Loop({ name: 'live-tail', everyMs: POLL_MS, logger, run: () => this.#look() })
  }

  /** Where to follow from: `resumed` where that is not too far back, else the ends of the chains. */
  async findStart(
    workspaceIds: readonly WorkspaceId[],
    resumed: Positions | null,
  ): Promise<{ positions: Positions; isGap: boolean }> {
    const heads = await listHeadSeqs(this.#db, workspaceIds)
    const isNear = ([id, seq]: [WorkspaceId, number]) => {
      const missed = (heads.get(id) ?? 0) - seq
      return missed >= 0 && missed <= EVENTS_MISSED_MAX
    }
    if (resumed && [...resumed].every(isNear)) return { positions: resumed, isGap: false }
    return { positions: heads, isGap: resumed !== null }
  }

  /** Until the returned function is called. */
  follow(follower: Follower): () => void {
    this.#refuseMore(follower)
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }

  #refuseMore({ companyId, userId }: Follower): void {
    const colleagues = [...this.#followers].filter((other) => other.companyId === companyId)
    const own = colleagues.filter((other) => other.userId === userId).length
    if (own >= FOLLOWERS_PER_USER_MAX) {
      throw new ApiError('rate_limited', {
        message: `You follow events in ${FOLLOWERS_PER_USER_MAX} places already. Close one of them.`,
        retryAfterSeconds: 30,
      })
    }
    const isFull = this.#followers.size >= FOLLOWERS_MAX
    if (isFull || colleagues.length >= FOLLOWERS_PER_COMPANY_MAX) {
      throw new ApiError('overloaded', {
        message: 'Too many people follow events on this node. Retry after the given delay.',
        retryAfterSeconds: 30,
      })
    }
  }

  /** A hint that these chains grew. */
  wakeFor(workspaceIds: Iterable<WorkspaceId>): void {
    if (this.#followers.size === 0 || this.#timer) return
    const isFollowed = [...workspaceIds].some((id) =>
      [...this.#followers].some(({ positions }) => positions.has(id)),
    )
    if (!isFollowed) return
    const waitMs = Math.max(0, this.#lookedAtMs + LOOK_MS_MIN - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#loop.runNow()
    }, waitMs)
    this.#timer.unref()
  }

  async #look(): Promise<void> {
    if (this.#followers.size === 0) return
    this.#lookedAtMs = performance.now()
    const lowest = new Map<WorkspaceId, number>()
    for (const { positions } of this.#followers) {
      for (const [id, seq] of positions) {
        lowest.set(id, Math.min(seq, lowest.get(id) ?? Number.MAX_SAFE_INTEGER))
      }
    }
    const heads = await listHeadSeqs(this.#db, [...lowest.keys()])
    for (const [workspaceId, headSeq] of heads) {
      const afterSeq = lowest.get(workspaceId) ?? headSeq
      if (headSeq > afterSeq) await this.#readOn(workspaceId, { afterSeq, headSeq })
    }
  }

  async #readOn(
    workspaceId: WorkspaceId,
    { afterSeq, headSeq }: { afterSeq: number; headSeq: number },
  ): Promise<void> {
    let seenSeq = afterSeq
    for (let reads = 0; reads < READS_PER_LOOK_MAX && seenSeq < headSeq; reads += 1) {
      const limit = Math.min(EVENTS_PER_READ, headSeq - seenSeq)
      const run = await listChainRun(this.#db, { workspaceId, afterSeq: seenSeq, limit })
      const events = run.entries.map(({ event }) => event)
      // Missing events were archived in the meantime. The last event read can be newer than the head.
      const lastSeq = events.at(-1)?.seq ?? headSeq
      seenSeq = run.hasMore ? lastSeq : Math.max(headSeq, lastSeq)
      for (const follower of this.#followers) tell(follower, workspaceId, { events, seenSeq })
    }
    if (seenSeq >= headSeq) return
    for (const follower of this.#followers) {
      const seq = follower.positions.get(workspaceId)
      if (seq === undefined || seq >= headSeq) continue
      follower.positions.set(workspaceId, headSeq)
      follower.onGap()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer)
    await this.#loop[Symbol.asyncDispose]()
  }
}

function tell(
  { positions, filter, onEvent }: Follower,
  workspaceId: WorkspaceId,
  { events, seenSeq }: { events: readonly SealedEvent[]; seenSeq: number },
): void {
  const toldSeq = positions.get(workspaceId)
  if (toldSeq === undefined || toldSeq >= seenSeq) return
  for (const event of events) {
    if (event.seq <= toldSeq || !matchesFilter(event, filter)) continue
    positions.set(workspaceId, event.seq)
    onEvent(event)
  }
  positions.set(workspaceId, seenSeq)
}
