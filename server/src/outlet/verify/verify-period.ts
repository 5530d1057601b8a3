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
import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database, Queryable } from '../../platform/pg/database.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { SERVICE } from '../../platform/scheduling/thread-share.ts'
import { TimeSlice } from '../../platform/scheduling/time-slice.ts'
import { confirmRows } from './confirm-rows.ts'
import { damageOf, orUnreadable, readArchivedEvent, segmentProblem } from './verify-archive.ts'
import { entryProblem, findPlantedBefore, findPlantedBeyond, runAfter } from './verify-entry.ts'
import { type ChainVerdict, repeatWhileArchived, type VerifyOptions } from './verify-ledger.ts'
import type { Covered, VerifyPeriod } from './verify-run.ts'

type PeriodOptions = VerifyOptions & {
  /** Called once the number of events to verify is known. */
  onTotal?: (total: number) => void
}

/**
 * `events` are those of the period, `range` are the first and the last of them, and `end` was verified last: the
 * event after the period, if there is one.
 */
type PeriodVerdict =
  | (Extract<ChainVerdict, { ok: true }> & Pick<Covered, 'range'> & { end: ChainHead })
  | Extract<ChainVerdict, { ok: false }>

type Bounds = { firstSeq: number; lastSeq: number }
/** The event after the last verified one, and why it doesn't continue the chain. */
type Next = { event: SealedEvent; problem: string | null } | { event: null; problem: string }

const EVENTS_PER_READ = 2_000
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
    const bounds = await this.#findBounds(end.seq)
    this.#options.onTotal?.(Math.max(0, bounds.lastSeq - bounds.firstSeq + 1))
    const before = await readPlace(this.#db, this.#workspaceId, bounds.firstSeq - 1)
    if (before === null) return this.#bad('the event is missing', bounds.firstSeq - 1)
    this.#head = before
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

  async #verifyCold({ firstSeq, lastSeq }: Bounds): Promise<PeriodVerdict | null> {
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

  async #verifyHot({ firstSeq, lastSeq }: Bounds): Promise<PeriodVerdict | null> {
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
  async #verifyNext(end: ChainHead): Promise<PeriodVerdict | null> {
    const { seq, hash } = this.#head
    if (seq === end.seq) {
      if (hash === end.hash) return null
      return this.#bad(`the head has the hash ${end.hash} and the id ${end.lastId}`, seq)
    }
    const next = (await this.#readColdNext()) ?? (await this.#readHotNext())
    if (next === null) return this.#bad('the event is missing', seq + 1)
    const { event, problem } = next
    if (event === null) return this.#bad(problem, seq + 1)
    if (event.prevHash !== hash && event.seq === seq + 1) {
      return this.#bad(`the next event continues from the hash ${event.prevHash}`, seq)
    }
    if (problem !== null) return this.#bad(problem, event.seq, event.id)
    this.#head = headAfter(event)
    return null
  }

  async #readHotNext(): Promise<Next | null> {
    const next = { workspaceId: this.#workspaceId, limit: 1, ...runAfter(this.#head) }
    const [entry] = (await listChainRun(this.#db, next)).entries
    return entry ? { event: entry.event, problem: entryProblem(this.#head, entry) } : null
  }

  async #readColdNext(): Promise<Next | null> {
    const place = { workspaceId: this.#workspaceId, seq: this.#head.seq + 1 }
    try {
      const event = await readArchivedEvent(this.#db, this.#archive, place)
      if (event === null) return null
      const verdict = verifyLink(this.#head, event)
      return { event, problem: verdict.ok ? null : verdict.problem }
    } catch (error) {
      return { event: null, problem: damageOf(error) }
    }
  }

  #bad(problem: string, seq: number, id: string | null = null): PeriodVerdict {
    const { workspaceId, events } = { workspaceId: this.#workspaceId, events: this.#events }
    return { ok: false, workspaceId, events, seq, id, problem }
  }
}
