import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, matchesFilter } from '../../ledger/event-filter.ts'
import { type ChainEntry, listChainRun } from '../../ledger/event-store.ts'
import type { CompanyId, UserId, WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/loop.ts'
import type { Queryable } from '../../platform/pg.ts'
import { TimeSlice } from '../../platform/time-slice.ts'
import { listHeadSeqs } from './head-seq-store.ts'

const FOLLOWERS_MAX = 200
const FOLLOWERS_PER_USER_MAX = 5
/** A share, so that no company shuts out the others. */
const FOLLOWERS_PER_COMPANY_MAX = 50
/** Polling finds commits of other nodes; commits of this node wake the reader. */
const POLL_MS = 400
/** The least time between two looks, however often the reader is woken. */
const LOOK_MS_MIN = 100
/** Few, because an event can be a quarter of a megabyte. */
const EVENTS_PER_READ = 100
const BYTES_PER_READ = 256 * 1_024
/**
 * What a company's followers can cost per look. A unit is about 1 µs of the main thread: sending an event
 * to a follower, or 1 KiB of it. What is left waits for the next look.
 */
const UNITS_PER_LOOK_MAX = 20_000
const UNITS_PER_EVENT_READ = 20
/** Writes to sockets run after the slice, so time alone doesn't bound them. */
const UNITS_PER_SLICE = 2_000
/** Followers that don't catch up within this many looks skip to the end of the chain, with a gap. */
const LOOKS_BEHIND_MAX = 20
/** A client that resumes further back gets a gap. */
const EVENTS_MISSED_MAX = 1_000

/** Up to where a follower has been told of each chain. */
export type Positions = Map<WorkspaceId, number>

export type Follower = {
  companyId: CompanyId
  userId: UserId
  filter: EventFilter
  positions: Positions
  /** True while the client reads too slowly. It gets no events then, and a gap in their place. */
  isStalled: () => boolean
  /** Events of one chain that match, in order. `positions` are still before the first of them. */
  onEvents: (events: readonly SealedEvent[], chain: WorkspaceId) => void
  /** Some events were left out. `positions` are after them. */
  onGap: () => void
}

/** Events of one chain after `afterSeq`. Up to `seenSeq`, there are no others. */
type ChainRead = {
  workspaceId: WorkspaceId
  entries: readonly ChainEntry[]
  afterSeq: number
  seenSeq: number
}

/** A chain to read in this look, from the follower that is furthest behind up to the head. */
type ChainTask = {
  workspaceId: WorkspaceId
  companyId: CompanyId
  afterSeq: number
  headSeq: number
}

/**
 * Tells followers of new events. A node has one reader for all of them: it reads each chain once, from
 * the follower that is furthest behind. Without followers it reads nothing.
 *
 * Each company has a budget per look, and is served in time slices. If the budget ends before the chain,
 * the next look continues; after 20 such looks in a row the followers skip the rest and get a gap.
 */
export class LiveTail implements AsyncDisposable {
  readonly #db: Queryable
  readonly #followers = new Set<Follower>()
  /** How many looks in a row ended before the end of a chain. */
  #looksBehind = new Map<WorkspaceId, number>()
  readonly #loop: Loop
  #lookedAtMs = 0
  #timer: NodeJS.Timeout | null = null

  constructor({ db, logger }: { db: Queryable; logger: Logger }) {
    this.#db = db
    this.#loop = new Loop({
      name: 'live-tail',
      everyMs: POLL_MS,
      logger,
      run: (signal) => this.#look(signal),
    })
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
    if (isFollowed) this.#lookSoon()
  }

  #lookSoon(): void {
    if (this.#timer) return
    const waitMs = Math.max(0, this.#lookedAtMs + LOOK_MS_MIN - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#loop.runNow()
    }, waitMs)
    this.#timer.unref()
  }

  async #look(signal: AbortSignal): Promise<void> {
    if (this.#followers.size === 0) return
    this.#lookedAtMs = performance.now()
    const tasks = await this.#listTasks()
    const unitsLeft = new Map<CompanyId, number>()
    const looksBehind = new Map<WorkspaceId, number>()
    for (const task of tasks) {
      if (signal.aborted) return
      const { workspaceId, companyId, headSeq } = task
      const units = unitsLeft.get(companyId) ?? UNITS_PER_LOOK_MAX
      const { spent, seenSeq } = await this.#readOn(task, units)
      unitsLeft.set(companyId, units - spent)
      if (seenSeq >= headSeq) continue
      const looks = (this.#looksBehind.get(workspaceId) ?? 0) + 1
      if (looks < LOOKS_BEHIND_MAX) looksBehind.set(workspaceId, looks)
      else this.#skipTo(task)
    }
    this.#looksBehind = looksBehind
    if (looksBehind.size > 0) this.#lookSoon()
  }

  /** The chains that have grown. Those that an earlier look left unfinished come first. */
  async #listTasks(): Promise<ChainTask[]> {
    const lowest = new Map<WorkspaceId, { companyId: CompanyId; afterSeq: number }>()
    for (const { companyId, positions } of this.#followers) {
      for (const [id, seq] of positions) {
        const other = lowest.get(id)
        if (!other || seq < other.afterSeq) lowest.set(id, { companyId, afterSeq: seq })
      }
    }
    const heads = await listHeadSeqs(this.#db, [...lowest.keys()])
    const tasks: ChainTask[] = []
    for (const [workspaceId, headSeq] of heads) {
      const low = lowest.get(workspaceId)
      if (low && low.afterSeq < headSeq) tasks.push({ workspaceId, ...low, headSeq })
    }
    const looksBehind = ({ workspaceId }: ChainTask) => this.#looksBehind.get(workspaceId) ?? 0
    return tasks.toSorted((a, b) => looksBehind(b) - looksBehind(a))
  }

  /** Reads and tells until the head, or until the units are spent. */
  async #readOn(
    { workspaceId, companyId, afterSeq, headSeq }: ChainTask,
    unitsMax: number,
  ): Promise<{ spent: number; seenSeq: number }> {
    const slice = new TimeSlice(companyId)
    let seenSeq = afterSeq
    let spent = 0
    while (seenSeq < headSeq && spent < unitsMax) {
      const limit = Math.min(EVENTS_PER_READ, headSeq - seenSeq)
      const { entries, hasMore } = await listChainRun(this.#db, {
        workspaceId,
        afterSeq: seenSeq,
        limit,
        bytesMax: BYTES_PER_READ,
      })
      // Missing events were archived in the meantime. The last event read can be newer than the head.
      const lastSeq = entries.at(-1)?.event.seq ?? headSeq
      const toSeq = hasMore ? lastSeq : Math.max(headSeq, lastSeq)
      spent += UNITS_PER_EVENT_READ * entries.length
      spent += await this.#tellAll(
        { workspaceId, entries, afterSeq: seenSeq, seenSeq: toSeq },
        slice,
      )
      seenSeq = toSeq
    }
    return { spent, seenSeq }
  }

  /** Returns the units that it took. */
  async #tellAll(read: ChainRead, slice: TimeSlice): Promise<number> {
    const unitsPerFollower = read.entries.reduce((sum, { event }) => sum + unitsOf(event), 0)
    let spent = 0
    let sliceUnits = 0
    await slice.next()
    for (const follower of this.#followers) {
      const seq = follower.positions.get(read.workspaceId)
      // One that came in the meantime and is further behind is left to the next look.
      if (seq === undefined || seq < read.afterSeq || seq >= read.seenSeq) continue
      if (slice.isOver || sliceUnits >= UNITS_PER_SLICE) {
        await slice.next()
        sliceUnits = 0
      }
      if (!this.#followers.has(follower)) continue
      if (follower.isStalled()) {
        follower.positions.set(read.workspaceId, read.seenSeq)
        follower.onGap()
        continue
      }
      tell(follower, seq, read)
      spent += unitsPerFollower
      sliceUnits += unitsPerFollower
    }
    return spent
  }

  #skipTo({ workspaceId, headSeq }: ChainTask): void {
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
  { positions, filter, onEvents }: Follower,
  toldSeq: number,
  { workspaceId, entries, seenSeq }: ChainRead,
): void {
  const events: SealedEvent[] = []
  for (const { event, facets } of entries) {
    if (event.seq > toldSeq && matchesFilter(event, filter, facets)) events.push(event)
  }
  if (events.length > 0) onEvents(events, workspaceId)
  positions.set(workspaceId, seenSeq)
}

function unitsOf({ actor, resource, metadata }: SealedEvent): number {
  const length = (actor?.length ?? 0) + (resource?.length ?? 0) + (metadata?.length ?? 0)
  return 1 + length / 1_024
}
