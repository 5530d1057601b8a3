import { ApiError } from '../../../errors.ts'
import type { SealedEvent } from '../../../ledger/event.ts'
import {
  comparesMetadata,
  type EventFilter,
  matchEvent,
} from '../../../ledger/filter/event-filter.ts'
import { type ChainEntry, listChainRun } from '../../../ledger/event-store.ts'
import { listHeadSeqs } from '../../../ledger/head-seq-store.ts'
import { MetadataText } from '../../../ledger/search/metadata-match.ts'
import type { CompanyId, UserId, WorkspaceId } from '../../../platform/id.ts'
import type { Logger } from '../../../platform/logger.ts'
import { Loop } from '../../../platform/scheduling/loop.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { TimeSlice } from '../../../platform/scheduling/time-slice.ts'

const FOLLOWERS_MAX = 200
const FOLLOWERS_PER_USER_MAX = 5
/** Keeps one company from using up the node's limit. If several do, they lose some of theirs to other companies. */
const FOLLOWERS_PER_COMPANY_MAX = 50
/** Polling finds commits of other nodes; commits of this node wake the reader. */
const POLL_MS = 400
/** The minimum time between two polls, however often the reader is woken. */
const POLL_INTERVAL_MS_MIN = 100
/** Small, because an event can be as large as 256 KiB. */
const EVENTS_PER_READ = 100
const BYTES_PER_READ = 256 * 1_024
/**
 * The budget of a company's followers per poll. A unit is about 1 µs of the main thread: sending an event to
 * a follower, or 1 KiB of it. The rest waits for the next poll.
 */
const UNITS_PER_POLL_MAX = 20_000
const UNITS_PER_EVENT_READ = 20
/** Comparing large metadata takes up to a hundred times as long as sending it, so its time counts. */
const UNITS_PER_MS = 1_000
/** Writes to sockets run after the slice, so time alone doesn't bound them. */
const UNITS_PER_SLICE = 2_000
/** Followers that don't catch up within this many polls skip to the end of the chain and get a gap. */
const POLLS_BEHIND_MAX = 20
/** A client that resumes further back gets a gap. */
const EVENTS_MISSED_MAX = 1_000

/** The seq of the last event that a follower has received from each chain. */
export type Positions = Map<WorkspaceId, number>

export type Follower = {
  companyId: CompanyId
  userId: UserId
  filter: EventFilter
  positions: Positions
  /** True while the client reads too slowly. It then gets a gap instead of events. */
  isStalled: () => boolean
  /** Matching events of one chain, in order. `positions` are still before the first of them. */
  onEvents: (events: readonly SealedEvent[], chain: WorkspaceId) => void
  /** Some events were skipped. `positions` are after them. */
  onGap: () => void
  /** Another company needs the place. The client reconnects. */
  onReplaced: () => void
}

/** Events of one chain after `afterSeq`. Up to `seenSeq`, there are no others. */
type ChainRead = {
  workspaceId: WorkspaceId
  entries: readonly (ChainEntry & { metadata: MetadataText | null })[]
  afterSeq: number
  seenSeq: number
}

/** A chain to read in this poll, from the follower that is furthest behind up to the head. */
type ChainTask = {
  workspaceId: WorkspaceId
  companyId: CompanyId
  afterSeq: number
  headSeq: number
}

/**
 * Sends new events to followers. A node has one reader for all of them: it reads each chain once, starting
 * at the follower that is furthest behind. Without followers it reads nothing.
 *
 * Each company has a budget per poll and is served in time slices. If the budget runs out before the end of
 * a chain, the next poll continues. After 20 such polls in a row, followers skip the rest and get a gap.
 */
export class LiveTail implements AsyncDisposable {
  readonly #db: Queryable
  readonly #followers = new Set<Follower>()
  /** How many polls in a row stopped before the end of each chain. */
  #pollsBehind = new Map<WorkspaceId, number>()
  readonly #loop: Loop
  #polledAtMs = 0
  #timer: NodeJS.Timeout | null = null

  constructor({ db, logger }: { db: Queryable; logger: Logger }) {
    this.#db = db
    this.#loop = new Loop({
      name: 'live-tail',
      everyMs: POLL_MS,
      logger,
      run: (signal) => this.#poll(signal),
    })
  }

  /** Returns where to start: at `resumed` if it is not too far back, otherwise at the ends of the chains. */
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

  /** Sends events until the returned function is called. */
  follow(follower: Follower): () => void {
    this.#admit(follower)
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }

  #admit({ companyId, userId }: Follower): void {
    const colleagues = [...this.#followers].filter((other) => other.companyId === companyId)
    const own = colleagues.filter((other) => other.userId === userId).length
    if (own >= FOLLOWERS_PER_USER_MAX) {
      throw new ApiError('rate_limited', {
        message: `You have ${FOLLOWERS_PER_USER_MAX} live tails open, which is the maximum. Close one of them.`,
        retryAfterSeconds: 30,
      })
    }
    if (colleagues.length >= FOLLOWERS_PER_COMPANY_MAX) throw tooManyFollowers()
    if (this.#followers.size >= FOLLOWERS_MAX) this.#replaceOne(colleagues.length)
  }

  /** Makes room for a company that has `own` followers: the company with the most loses its oldest one. */
  #replaceOne(own: number): void {
    const byCompany = Map.groupBy(this.#followers, ({ companyId }) => companyId)
    const [most = []] = [...byCompany.values()].toSorted((a, b) => b.length - a.length)
    const [oldest] = most
    if (!oldest || own + 1 >= most.length) throw tooManyFollowers()
    this.#followers.delete(oldest)
    oldest.onReplaced()
  }

  /** A hint that these chains grew. */
  wakeFor(workspaceIds: Iterable<WorkspaceId>): void {
    if (this.#followers.size === 0 || this.#timer) return
    const isFollowed = [...workspaceIds].some((id) =>
      [...this.#followers].some(({ positions }) => positions.has(id)),
    )
    if (isFollowed) this.#pollSoon()
  }

  #pollSoon(): void {
    if (this.#timer) return
    const waitMs = Math.max(0, this.#polledAtMs + POLL_INTERVAL_MS_MIN - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#loop.runNow()
    }, waitMs)
    this.#timer.unref()
  }

  async #poll(signal: AbortSignal): Promise<void> {
    if (this.#followers.size === 0) return
    this.#polledAtMs = performance.now()
    const tasks = await this.#listTasks()
    const unitsLeft = new Map<CompanyId, number>()
    const pollsBehind = new Map<WorkspaceId, number>()
    for (const task of tasks) {
      if (signal.aborted) return
      const { workspaceId, companyId, headSeq } = task
      const units = unitsLeft.get(companyId) ?? UNITS_PER_POLL_MAX
      const { spent, seenSeq } = await this.#readOn(task, units)
      unitsLeft.set(companyId, units - spent)
      if (seenSeq >= headSeq) continue
      const polls = (this.#pollsBehind.get(workspaceId) ?? 0) + 1
      if (polls < POLLS_BEHIND_MAX) pollsBehind.set(workspaceId, polls)
      else this.#skipTo(task)
    }
    this.#pollsBehind = pollsBehind
    if (pollsBehind.size > 0) this.#pollSoon()
  }

  /** The chains with new events. Those that an earlier poll left unfinished come first. */
  async #listTasks(): Promise<ChainTask[]> {
    const followed = new Map<WorkspaceId, Omit<ChainTask, 'workspaceId' | 'headSeq'>>()
    const farthest = new Map<WorkspaceId, number>()
    for (const { companyId, positions } of this.#followers) {
      for (const [id, seq] of positions) {
        const afterSeq = Math.min(seq, followed.get(id)?.afterSeq ?? seq)
        followed.set(id, { companyId, afterSeq })
        farthest.set(id, Math.max(seq, farthest.get(id) ?? 0))
      }
    }
    const heads = await listHeadSeqs(this.#db, [...followed.keys()])
    const tasks: ChainTask[] = []
    for (const [workspaceId, { companyId, afterSeq }] of followed) {
      const headSeq = heads.get(workspaceId) ?? 0
      // The database was restored from a backup: the next events get numbers that were already sent.
      if ((farthest.get(workspaceId) ?? 0) > headSeq) this.#moveBack(workspaceId, headSeq)
      if (afterSeq < headSeq) tasks.push({ workspaceId, companyId, afterSeq, headSeq })
    }
    const pollsBehind = ({ workspaceId }: ChainTask) => this.#pollsBehind.get(workspaceId) ?? 0
    return tasks.toSorted((a, b) => pollsBehind(b) - pollsBehind(a))
  }

  /** Reads and sends events up to the head, or until the budget is spent. */
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
      spent += await this.#sendToFollowers(
        { workspaceId, entries: entries.map(withMetadata), afterSeq: seenSeq, seenSeq: toSeq },
        slice,
      )
      seenSeq = toSeq
    }
    return { spent, seenSeq }
  }

  /** Returns the units spent. */
  async #sendToFollowers(read: ChainRead, slice: TimeSlice): Promise<number> {
    const unitsPerFollower = read.entries.reduce((sum, { event }) => sum + unitsOf(event), 0)
    let spent = 0
    let sliceUnits = 0
    await slice.next()
    for (const follower of this.#followers) {
      const seq = follower.positions.get(read.workspaceId)
      // A follower that joined meanwhile and is further behind waits for the next poll.
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
      const beforeMs = slice.usedMs
      const events = await matchesOf(follower, seq, read, slice)
      if (comparesMetadata(follower.filter)) spent += (slice.usedMs - beforeMs) * UNITS_PER_MS
      if (!this.#followers.has(follower)) continue
      if (events.length > 0) follower.onEvents(events, read.workspaceId)
      follower.positions.set(read.workspaceId, read.seenSeq)
      spent += unitsPerFollower
      sliceUnits += unitsPerFollower
    }
    return spent
  }

  #skipTo({ workspaceId, headSeq }: ChainTask): void {
    this.#move(workspaceId, headSeq, (seq) => seq < headSeq)
  }

  #moveBack(workspaceId: WorkspaceId, headSeq: number): void {
    this.#move(workspaceId, headSeq, (seq) => seq > headSeq)
  }

  /** Moves the followers at these positions, and tells them that events are missing. */
  #move(workspaceId: WorkspaceId, toSeq: number, isMoved: (seq: number) => boolean): void {
    for (const follower of this.#followers) {
      const seq = follower.positions.get(workspaceId)
      if (seq === undefined || !isMoved(seq)) continue
      follower.positions.set(workspaceId, toSeq)
      follower.onGap()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer)
    await this.#loop[Symbol.asyncDispose]()
  }
}

function tooManyFollowers(): ApiError {
  return new ApiError('overloaded', {
    message: 'Too many live tails are open. Try again in a moment.',
    retryAfterSeconds: 30,
  })
}

async function matchesOf(
  { filter }: Follower,
  sentSeq: number,
  { entries }: ChainRead,
  slice: TimeSlice,
): Promise<SealedEvent[]> {
  const events: SealedEvent[] = []
  for (const { event, facets, metadata } of entries) {
    if (slice.isOver) await slice.next()
    if (event.seq <= sentSeq) continue
    const match = matchEvent(event, filter, { facets, metadata })
    if (typeof match === 'boolean' ? match : await slice.run(match)) events.push(event)
  }
  return events
}

/** All followers compare the same copy of the metadata. */
function withMetadata<T extends ChainEntry>(entry: T): T & { metadata: MetadataText | null } {
  const { metadata } = entry.event
  return { ...entry, metadata: metadata === null ? null : new MetadataText(metadata) }
}

function unitsOf({ actor, resource, metadata }: SealedEvent): number {
  const length = (actor?.length ?? 0) + (resource?.length ?? 0) + (metadata?.length ?? 0)
  return 1 + length / 1_024
}
