import { randomUUID } from 'node:crypto'
import type { PoolClient } from 'pg'
import { OperatorError } from '../../../errors.ts'
import type { Database } from '../../../platform/pg/database.ts'
import { refuseMovedLedger } from '../../../platform/node/moved-ledger.ts'
import { EventsMovedError } from '../back-up-events.ts'
import type { BackedUpHead, CoveredEnd } from '../event-coverage.ts'
import { analyzeTables, continueIdentities, deleteArchivedEvents } from '../restore-store.ts'
import { eventColumns, listHeads, listTables, prepareSession } from '../snapshot-store.ts'
import { refuseFilledTarget, refuseOtherSchema } from './check-target.ts'
import { moveEvents, readCoverage } from './move-events.ts'
import {
  addRefusals,
  analyzeOnly,
  deleteLedgerMove,
  listMovedTables,
  readLedgerMove,
  takeTargetLock,
  TargetBusyError,
  writeLedgerMove,
} from './move-store.ts'
import { type Baseline, moveBaseline, moveChanges } from './move-tables.ts'
import { WriteStop } from './write-stop.ts'

const TRIES_MAX = 3
/** With fewer new events than this since the last pass, the last step is short. */
const REST_EVENTS_MAX = 2_000
const PASSES_MAX = 20
/** For a statement of a mover that was killed. */
const TARGET_WAIT_MS_MAX = 10_000

type MoveStep = 'events' | 'tables' | 'lastTables'

type MoveOptions = {
  source: Database
  target: Database
  /** Where both are, without logins. */
  address: { source: string; target: string }
  stopMsMax: number
  onProgress: (step: MoveStep, done: number, total: number) => void
  /** Verifies the copy while the source is in use. Throws an `OperatorError` if it is wrong. */
  verifyCopy: () => Promise<void>
  /** Verifies the events that were added since, up to these heads. */
  verifyRest: (heads: readonly BackedUpHead[]) => Promise<void>
}

/** `stoppedMs`: how long the source refused writes until the target was complete. Null if an earlier attempt did that. */
export type Moved = { heads: BackedUpHead[]; stoppedMs: number | null }

/**
 * Copies a ledger to another database while the source is in use, verifies it, and stops writes to the source for the
 * last step. Can be killed at any time: the source then continues, unless the last step was complete, and the next call
 * continues with the events that the target has.
 *
 *   source  ──▶ LEAVING ──writes stop──▶ LEFT
 *   target  ──▶ ARRIVING ──────────────────────▶ no mark: a node can start
 */
export async function moveLedger(options: MoveOptions): Promise<Moved> {
  return await withTarget(options.target, async (target) => {
    const move = { ...options, target }
    const { id, isLeft } = await openMove(move)
    let stoppedMs: number | null = null
    if (!isLeft) {
      await withClient(options.source, addRefusals)
      const baseline = await copyAhead(move)
      await options.verifyCopy()
      await catchUp(move)
      stoppedMs = await takeLastStep(move, { id, baseline })
    }
    await deleteLedgerMove(target, id)
    return { heads: await listHeads(target), stoppedMs }
  })
}

/**
 * All work on the target uses one connection, which keeps others away. After a kill, PostgreSQL may still run the last
 * statement of that connection, and the next call waits for it.
 */
export async function withTarget<T>(
  database: Database,
  work: (target: PoolClient) => Promise<T>,
): Promise<T> {
  const target = await database.pool.connect()
  try {
    await prepareSession(target)
    await takeTargetLock(target, TARGET_WAIT_MS_MAX)
    return await work(target)
  } catch (error) {
    if (!(error instanceof TargetBusyError)) throw error
    throw new OperatorError(
      'Another annals move is using the target, or was just interrupted. Run the command again when that one is done.',
      { cause: error },
    )
  } finally {
    target.release(true)
  }
}

type OpenMove = Omit<MoveOptions, 'target'> & { target: PoolClient }

async function openMove({
  source,
  target,
  address,
}: OpenMove): Promise<{ id: string; isLeft: boolean }> {
  return await withClient(source, async (from) => {
    await refuseOtherSchema(from, target)
    const [leaving, arriving] = [await readLedgerMove(from), await readLedgerMove(target)]
    const isSame = arriving?.state === 'ARRIVING' && arriving.id === leaving?.id
    if (isSame && leaving?.state === 'LEFT') return { id: leaving.id, isLeft: true }
    await refuseMovedLedger(from)
    if (isSame) return { id: arriving.id, isLeft: false }
    if (arriving?.state === 'ARRIVING') {
      throw new OperatorError(
        `Nothing was moved: the target has an incomplete copy from ${arriving.other}, which another move left there. Use an empty database.`,
      )
    }
    await refuseFilledTarget(target)
    const id = randomUUID()
    // In this order: a target that is marked without the source could never be used.
    await writeLedgerMove(from, { id, state: 'LEAVING', other: address.target })
    await writeLedgerMove(target, { id, state: 'ARRIVING', other: address.source })
    return { id, isLeft: false }
  })
}

/** Copies all events and large tables as of one moment. */
async function copyAhead(move: OpenMove): Promise<Baseline> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await withClient(move.source, (source) => copyAheadOnce(move, source))
    } catch (error) {
      if (!(error instanceof EventsMovedError)) throw error
      if (tries < TRIES_MAX) continue
      throw new OperatorError(
        `Events were archived during each of ${TRIES_MAX} tries (${error.message}). Run the command again: it continues where it stopped. If no events are being archived, run annals verify.`,
        { cause: error },
      )
    }
  }
}

async function copyAheadOnce(move: OpenMove, source: PoolClient): Promise<Baseline> {
  const { target } = move
  await prepareSession(source)
  const heads = await listHeads(source)
  const covered = await readCoverage({ source, target }, heads)
  await copyMissing(move, { source, covered, heads })
  const tables = await listMovedTables(source)
  const onTable = (done: number, total: number) => move.onProgress('tables', done, total)
  const baseline = await moveBaseline({ source, target, tables, onTable })
  // The heads as of the same moment as the tables, so that the copy can be verified.
  await copyMissing(move, { source, covered, heads: await listHeads(target) })
  await deleteArchivedEvents(target)
  await analyzeTables(target)
  return baseline
}

/** Copies new events until few are left. */
async function catchUp(move: OpenMove): Promise<void> {
  for (let passes = 0; passes < PASSES_MAX; passes += 1) {
    const events = await withClient(move.source, async (source) => {
      await prepareSession(source)
      const heads = await listHeads(source)
      const covered = await readCoverage({ source, target: move.target }, heads)
      return await copyMissing(move, { source, covered, heads })
    }).catch((error: unknown) => {
      if (error instanceof EventsMovedError) return null
      throw error
    })
    if (events !== null && events <= REST_EVENTS_MAX) return
  }
}

/** Returns for how long writes were stopped until the target was complete. */
async function takeLastStep(
  move: OpenMove,
  { id, baseline }: { id: string; baseline: Baseline },
): Promise<number> {
  const { target } = move
  await using stop = await WriteStop.start(move.source, move.stopMsMax)
  const small = await withClient(move.source, async (source) => {
    await prepareSession(source)
    const heads = await listHeads(source)
    const covered = await readCoverage({ source, target }, heads)
    await copyMissing(move, { source, covered, heads })
    const tables = await listMovedTables(source)
    const onTable = (done: number, total: number) => {
      stop.refuseLost()
      move.onProgress('lastTables', done, total)
    }
    await target.query('begin')
    await moveChanges({ source, target, tables, onTable }, baseline)
    await deleteArchivedEvents(target)
    await continueIdentities(target)
    await target.query('commit')
    await refuseOtherSchema(source, target)
    refuseOtherHeads(heads, await listHeads(target))
    stop.refuseLost()
    await move.verifyRest(heads)
    return tables.filter(({ hasReferences }) => hasReferences)
  })
  await stop.end(id)
  const { elapsedMs } = stop
  await analyzeOnly(
    target,
    small.map(({ name }) => name),
  )
  return elapsedMs
}

function refuseOtherHeads(here: readonly BackedUpHead[], there: readonly BackedUpHead[]): void {
  const other = here.findIndex(
    ({ workspaceId, seq, hash }, nth) =>
      there[nth]?.workspaceId !== workspaceId || there[nth].seq !== seq || there[nth].hash !== hash,
  )
  if (other === -1 && here.length === there.length) return
  throw new OperatorError(
    `The copy is wrong: the head of workspace ${here[other]?.workspaceId ?? 'unknown'} is different. The source accepts events again. Report this as a bug.`,
  )
}

async function copyMissing(
  { target, onProgress }: OpenMove,
  {
    source,
    covered,
    heads,
  }: {
    source: PoolClient
    covered: Map<string, CoveredEnd>
    heads: readonly BackedUpHead[]
  },
): Promise<number> {
  const { columns } = (await listTables(source)).find(({ name }) => name === 'event') ?? {}
  if (!columns) throw new Error('a database has a table event')
  let done = 0
  let total = 0
  for (const { workspaceId, seq, archivedSeq } of heads) {
    total += Math.max(0, seq - Math.max(archivedSeq, covered.get(workspaceId)?.last ?? 0))
  }
  const onEvents = (events: number) => onProgress('events', (done += events), total)
  const move = { source, target, covered, columns: eventColumns(columns), onEvents }
  return await moveEvents(move, heads)
}

/** A connection with an unfinished transaction or copy can't be used again. */
export async function withClient<T>(
  database: Database,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await database.pool.connect()
  let isOver = false
  try {
    const result = await work(client)
    isOver = true
    return result
  } finally {
    client.release(!isOver)
  }
}
