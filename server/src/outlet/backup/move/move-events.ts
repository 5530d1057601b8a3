import type { PoolClient } from 'pg'
import { OperatorError } from '../../../errors.ts'
import { EventsMovedError } from '../back-up-events.ts'
import { copyRows, loadRows } from '../copy-stream.ts'
import {
  type BackedUpHead,
  type CoveredEnd,
  type EventRun,
  missingRuns,
} from '../event-coverage.ts'
import { createPartitions, loadTableText } from '../restore-store.ts'
import { copyRunText, findOtherEvent, listPartitionMonths, readRunRow } from '../snapshot-store.ts'
import { listLastEvents } from './move-store.ts'

/** Events per statement, whose locks last about a second. After an interruption, at most this many are copied again. */
const RUN_EVENTS_MAX = 10_000
const CHECKED_ENDS = 1_000

type EventMove = {
  source: PoolClient
  target: PoolClient
  columns: readonly string[]
  /** Where the chains in the target end. Updated with each run. */
  covered: Map<string, CoveredEnd>
  onEvents: (events: number) => void
}

/**
 * Copies the events up to these heads that the target lacks. Stored events don't change, so this needs no snapshot.
 * Returns their number. Throws an `EventsMovedError` if events were archived since the heads were read.
 */
export async function moveEvents(move: EventMove, heads: readonly BackedUpHead[]): Promise<number> {
  const { source, target, covered } = move
  await createPartitions(target, await listPartitionMonths(source))
  let events = 0
  for (const run of missingRuns(heads, covered, RUN_EVENTS_MAX)) {
    covered.set(run.workspaceId, await moveRun(move, run))
    const count = run.last - run.first + 1
    events += count
    move.onEvents(count)
  }
  return events
}

/** The target commits each run, so a later attempt continues after it. */
async function moveRun(
  { source, target, columns }: EventMove,
  run: Pick<EventRun, 'workspaceId' | 'first' | 'last'>,
): Promise<CoveredEnd> {
  const { workspaceId, first, last } = run
  const gone = (seq: number) => new EventsMovedError(`event ${seq} of ${workspaceId} is missing`)
  let next = first
  let lastHash = ''
  const onRow = (row: Buffer): void => {
    const { seq, hash } = readRunRow(row)
    if (seq !== next) throw gone(next)
    next += 1
    lastHash = hash
  }
  async function* rows(): AsyncGenerator<Buffer, void, void> {
    yield* copyRows(source, copyRunText(columns, run), onRow)
    if (next <= last) throw gone(next)
  }
  await loadRows(target, loadTableText({ name: 'event', columns: [...columns] }), rows())
  return { last, lastHash }
}

/** What an earlier attempt has copied. Throws if it isn't from this ledger. */
export async function readCoverage(
  { source, target }: Pick<EventMove, 'source' | 'target'>,
  heads: readonly BackedUpHead[],
): Promise<Map<string, CoveredEnd>> {
  const workspaceIds = heads.map(({ workspaceId }) => workspaceId)
  const ends = await listLastEvents(target, workspaceIds)
  const archivedSeqOf = new Map(heads.map((head) => [head.workspaceId, head.archivedSeq]))
  const isHot = ({ workspaceId, last }: (typeof ends)[number]) =>
    last > (archivedSeqOf.get(workspaceId) ?? 0)
  const hot = ends.filter(isHot)
  for (let at = 0; at < hot.length; at += CHECKED_ENDS) {
    const other = await findOtherEvent(source, hot.slice(at, at + CHECKED_ENDS))
    if (other === null) continue
    throw new OperatorError(
      `Event ${other.seq} of workspace ${other.workspaceId} in the target is not from this ledger. Move to an empty database.`,
    )
  }
  return new Map(ends.map(({ workspaceId, last, lastHash }) => [workspaceId, { last, lastHash }]))
}
