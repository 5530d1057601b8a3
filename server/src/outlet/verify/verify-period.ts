import { findEndSeq, findSeqAt, readPlace } from '../../ledger/chain-search.ts'
import { verifyLink } from '../../ledger/chain.ts'
import { type ChainHead, EMPTY_HEAD, headAfter, type SealedEvent } from '../../ledger/event.ts'
import { listChainRun, readHead } from '../../ledger/event-store.ts'
import { readChecked } from '../../ledger/segment/cold-reader.ts'
import { readSegment } from '../../ledger/segment/segment-reader.ts'
import {
  findSegmentBefore,
  findSegmentReceived,
  listSegments,
  readArchivedSeq,
  type Segment,
} from '../../ledger/segment/segment-store.ts'
import { idTimeMs, type WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database, Queryable } from '../../platform/pg/database.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { SERVICE } from '../../platform/scheduling/thread-share.ts'
import { TimeSlice } from '../../platform/scheduling/time-slice.ts'
import { confirmRows } from './confirm-rows.ts'
import { damageOf, orUnreadable, readArchivedEvent, segmentProblem } from './verify-archive.ts'
import { entryProblem, findPlantedBefore, findPlantedBeyond, runAfter } from './verify-entry.ts'
import { type ChainVerdict, repeatWhileArchived } from './verify-ledger.ts'
import type { Covered, VerifyPeriod } from './verify-run.ts'
import type { TableSteps } from './verify-table.ts'

type PeriodOptions = TableSteps & {
  /** Called once the number of events to verify is known. */
  onTotal?: (total: number) => void
}

/**
 * `events` are those of the period, `range` are the first and the last of them, and `end` was verified last: the
 * event after the period, if there is one.
 */
type PeriodVerdict =
  | (Extract<ChainVerdict, { ok: true }> & Pick<Covered, 'range'> & { end: ChainHead })
  | BrokenVerdict
type BrokenVerdict = Extract<ChainVerdict, { ok: false }>

type Bounds = { firstSeq: number; lastSeq: number }
/** An event, and why it is not the one that was stored, or doesn't continue the chain. */
type Found = { event: SealedEvent; problem: string | null } | { event: null; problem: string }

const EVENTS_PER_READ = 2_000
const TIME_CHANGED =
  'it was received in the period, but the times in the database place it outside the period'
const SEGMENTS_PER_READ = 100

/**
 * Verifies the events that were received in a period, archived or not, and that the events before and after
 * them continue the same chain. Archived files are verified as a whole. Stops at the first bad event.
 */
export async function verifyPeriod(
  database: Pick<Database, 'pool' | 'db'>,
  archive: ObjectStore,
  chain: { workspaceId: WorkspaceId; period: VerifyPeriod },
  options: PeriodOptions = {},
): Promise<PeriodVerdict> {
  return await repeatWhileArchived(database.db, chain.workspaceId, () =>
    new PeriodWalk(database, archive, { ...chain, options }).verify(),
  )
}

class PeriodWalk {
  readonly #database: Pick<Database, 'pool' | 'db'>
  readonly #db: Queryable
  readonly #archive: ObjectStore
  readonly #workspaceId: WorkspaceId
  readonly #fromMs: number
  readonly #toMs: number
  readonly #options: PeriodOptions
  #head: ChainHead = EMPTY_HEAD
  #events = 0
  #range: Bounds | null = null

  constructor(
    database: Pick<Database, 'pool' | 'db'>,
    archive: ObjectStore,
    chain: { workspaceId: WorkspaceId; period: VerifyPeriod; options: PeriodOptions },
  ) {
    this.#database = database
    this.#db = database.db
    this.#archive = archive
    this.#workspaceId = chain.workspaceId
    this.#fromMs = chain.period.from.getTime()
    this.#toMs = chain.period.to.getTime()
    this.#options = chain.options
  }

  async verify(): Promise<PeriodVerdict> {
    const end = await readHead(this.#db, this.#workspaceId)
    if (!end) return this.#bad('the workspace has no head', 0)
    const planted =
      (await findPlantedBefore(this.#db, this.#workspaceId)) ??
      (await findPlantedBeyond(this.#db, this.#workspaceId))
    if (planted) return this.#bad(planted.problem, planted.seq, planted.id)
    const { firstSeq: searchedSeq, lastSeq } = await this.#findBounds(end.seq)
    const start = await this.#findStart(searchedSeq)
    if ('problem' in start) return start
    this.#head = start
    const bounds = { firstSeq: start.seq + 1, lastSeq: Math.max(lastSeq, start.seq) }
    this.#options.onTotal?.(bounds.lastSeq - start.seq)
    return (
      (await this.#verifyCold(bounds)) ??
      (await this.#verifyHot(bounds)) ??
      (await this.#verifyNext(end)) ?? {
        ok: true,
        workspaceId: this.#workspaceId,
        events: this.#events,
        range: this.#range,
        end: this.#head,
      }
    )
  }

  /**
   * Covers at least the events of the period, and whole files in the archive. If there are none, `lastSeq` is the
   * event before `firstSeq`. A deleted event counts as archived here, so the range ends or starts next to it, and
   * the walk finds that it is missing.
   */
  async #findBounds(headSeq: number): Promise<Bounds> {
    const [db, workspaceId] = [this.#db, this.#workspaceId]
    const archivedSeq = await readArchivedSeq(db, workspaceId)
    const archived = { workspaceId, fromSeq: 1, toSeq: archivedSeq }
    const firstFile = await findSegmentReceived(db, archived, this.#fromMs)
    const firstSeq =
      firstFile?.firstSeq ??
      (await findSeqAt(db, workspaceId, {
        atMs: this.#fromMs,
        afterSeq: archivedSeq,
        headSeq: Math.max(archivedSeq, headSeq),
      }))
    const hotEnd = (await findEndSeq(db, workspaceId, { toMs: this.#toMs, headSeq })) - 1
    const lastSeq =
      hotEnd > archivedSeq
        ? hotEnd
        : ((await findSegmentBefore(db, archived, this.#toMs))?.lastSeq ?? 0)
    return { firstSeq, lastSeq: Math.max(lastSeq, firstSeq - 1) }
  }

  /**
   * Returns the place before the first event of the walk, and moves it back over files until the period can't start
   * earlier. Nothing has verified the times that led here, but the hash of an event covers the time in its id, and ids
   * ascend. So the first event of a file decides, which the walk verifies too, or else the event before it.
   */
  async #findStart(searchedSeq: number): Promise<ChainHead | BrokenVerdict> {
    const [db, workspaceId] = [this.#db, this.#workspaceId]
    let firstSeq = searchedSeq
    for (;;) {
      const seq = firstSeq - 1
      if (seq === 0) return EMPTY_HEAD
      if ((await this.#findFile(firstSeq)) && (await this.#isOlder(firstSeq))) {
        return (await readPlace(db, workspaceId, seq)) ?? this.#bad('the event is missing', seq)
      }
      const found = await this.#readEvent(seq)
      if (found === null) return this.#bad('the event is missing', seq)
      const { event, problem } = found
      if (event === null) return this.#bad(problem, seq)
      if (problem !== null) return this.#bad(problem, seq, event.id)
      if (idTimeMs(event.id) < this.#fromMs) return headAfter(event)
      const before = await this.#findFile(seq)
      if (!before) return this.#bad(TIME_CHANGED, seq, event.id)
      firstSeq = before.firstSeq
    }
  }

  async #isOlder(seq: number): Promise<boolean> {
    const event = (await this.#readEvent(seq))?.event
    return event ? idTimeMs(event.id) < this.#fromMs : false
  }

  async #findFile(seq: number): Promise<Segment | undefined> {
    const place = { workspaceId: this.#workspaceId, fromSeq: seq, toSeq: seq, limit: 1 }
    return (await listSegments(this.#db, place))[0]
  }

  async #verifyCold({ firstSeq, lastSeq }: Bounds): Promise<BrokenVerdict | null> {
    const { onProgress, pause } = this.#options
    const [db, workspaceId] = [this.#db, this.#workspaceId]
    for (;;) {
      const run = { workspaceId, fromSeq: this.#head.seq + 1, toSeq: lastSeq }
      const segments = await listSegments(db, { ...run, limit: SEGMENTS_PER_READ })
      for (const segment of segments) {
        const place = { head: this.#head, segment }
        const problem = await segmentProblem(db, this.#archive, place)
        if (problem !== null) return this.#bad(problem, segment.firstSeq)
        await this.#countFile(segment)
        this.#head = { seq: segment.lastSeq, hash: segment.lastHash, lastId: segment.lastId }
        onProgress?.(this.#head.seq - firstSeq + 1)
        await pause?.()
      }
      if (segments.length === 0) return null
    }
  }

  /** Only a file at an end of the period is read for this. */
  async #countFile(segment: Segment): Promise<void> {
    const { firstSeq, lastSeq, minReceivedAtMs, maxReceivedAtMs } = segment
    if (minReceivedAtMs >= this.#fromMs && maxReceivedAtMs < this.#toMs) {
      this.#count({ firstSeq, lastSeq })
      return
    }
    const bytes = await orUnreadable(segment, () => readChecked(this.#archive, segment))
    for await (const events of readSegment(bytes)) {
      for (const event of events) this.#countEvent(event)
    }
  }

  /** The slower check of the remaining events says what is wrong. The last one is left to it, as in `verifyChain`. */
  async #confirmHot({ firstSeq, lastSeq }: Bounds): Promise<void> {
    const { eventsPerRead = EVENTS_PER_READ, onProgress, pause, owner = SERVICE } = this.#options
    const [workspaceId, head] = [this.#workspaceId, this.#head]
    const stretch = { workspaceId, head, toSeq: lastSeq - 1, eventsPerRead, owner }
    const confirmed = confirmRows(this.#database, stretch, (_, row) => this.#countEvent(row))
    for await (this.#head of confirmed) {
      onProgress?.(this.#head.seq - firstSeq + 1)
      await pause?.()
    }
  }

  #countEvent({ seq, receivedAtMs }: { seq: number; receivedAtMs: number }): void {
    if (receivedAtMs < this.#fromMs || receivedAtMs >= this.#toMs) return
    this.#count({ firstSeq: seq, lastSeq: seq })
  }

  #count({ firstSeq, lastSeq }: Bounds): void {
    this.#events += lastSeq - firstSeq + 1
    this.#range = { firstSeq: this.#range?.firstSeq ?? firstSeq, lastSeq }
  }

  async #verifyHot({ firstSeq, lastSeq }: Bounds): Promise<BrokenVerdict | null> {
    const { eventsPerRead = EVENTS_PER_READ, onProgress, pause, owner = SERVICE } = this.#options
    const slice = new TimeSlice(owner)
    let hasMore = this.#head.seq < lastSeq
    while (hasMore) {
      await this.#confirmHot({ firstSeq, lastSeq })
      const next = { workspaceId: this.#workspaceId, limit: eventsPerRead, ...runAfter(this.#head) }
      const run = await withRowOwner(owner, () => listChainRun(this.#db, next))
      const entries = run.entries.filter(({ event }) => event.seq <= lastSeq)
      for (const entry of entries) {
        const { event } = entry
        const problem = entryProblem(this.#head, entry)
        if (problem !== null) return this.#bad(problem, event.seq, event.id)
        this.#head = headAfter(event)
        this.#countEvent(event)
        if (slice.isOver) await slice.next()
      }
      onProgress?.(this.#head.seq - firstSeq + 1)
      hasMore = run.hasMore && entries.length === run.entries.length
      if (hasMore) await pause?.()
    }
    return this.#head.seq < lastSeq ? this.#bad('the event is missing', this.#head.seq + 1) : null
  }

  /**
   * Verifies the event after the period too: if it is in the signed tree, none was removed at the end of the
   * period.
   */
  async #verifyNext(end: ChainHead): Promise<BrokenVerdict | null> {
    const { seq, hash } = this.#head
    if (seq === end.seq) {
      if (hash === end.hash) return null
      return this.#bad(`the head has the hash ${end.hash} and the id ${end.lastId}`, seq)
    }
    const next = await this.#readEvent(seq + 1, this.#head)
    if (next === null) return this.#bad('the event is missing', seq + 1)
    const { event, problem } = next
    if (event === null) return this.#bad(problem, seq + 1)
    if (event.prevHash !== hash && event.seq === seq + 1) {
      return this.#bad(`the next event continues from the hash ${event.prevHash}`, seq)
    }
    if (problem !== null) return this.#bad(problem, event.seq, event.id)
    if (event.receivedAtMs < this.#toMs) return this.#bad(TIME_CHANGED, event.seq, event.id)
    this.#head = headAfter(event)
    return null
  }

  /** Verifies the event by itself unless the place before it is given. Null if it is missing. */
  async #readEvent(seq: number, prev?: ChainHead): Promise<Found | null> {
    try {
      const event = await readArchivedEvent(this.#db, this.#archive, {
        workspaceId: this.#workspaceId,
        seq,
      })
      if (event === null) return await this.#readHotEvent(seq, prev)
      const verdict = verifyLink(prev ?? placeBefore(event), event)
      return { event, problem: verdict.ok ? null : verdict.problem }
    } catch (error) {
      return { event: null, problem: damageOf(error) }
    }
  }

  async #readHotEvent(seq: number, prev?: ChainHead): Promise<Found | null> {
    const run = prev ? runAfter(prev) : { afterSeq: seq - 1, seen: null }
    const next = { workspaceId: this.#workspaceId, limit: 1, ...run }
    const [entry] = (await listChainRun(this.#db, next)).entries
    if (!entry || (!prev && entry.event.seq !== seq)) return null
    return { event: entry.event, problem: entryProblem(prev ?? placeBefore(entry.event), entry) }
  }

  #bad(problem: string, seq: number, id: string | null = null): BrokenVerdict {
    const { workspaceId, events } = { workspaceId: this.#workspaceId, events: this.#events }
    return { ok: false, workspaceId, events, seq, id, problem }
  }
}

/** What an event continues according to itself. Only the first event of a chain is known to continue nothing. */
function placeBefore({ seq, prevHash }: SealedEvent): ChainHead {
  return seq === 1 ? EMPTY_HEAD : { seq: seq - 1, hash: prevHash, lastId: null }
}
