import { join, resolve } from 'node:path'
import { archiveUrlOf } from '../../archive-url-of.ts'
import type { Config } from '../../config.ts'
import { integer } from '../../config-value.ts'
import type { DataSource } from '../../data-source.ts'
import { openArchive } from '../../open-archive.ts'
import { OperatorError } from '../../errors.ts'
import { isRefusal } from '../../outlet/archive/archive-deps.ts'
import { refuseOtherArchive } from '../../outlet/archive/archive-identity.ts'
import { readArchiveId } from '../../outlet/archive/archive-identity-store.ts'
import { findNewestSegment } from '../../outlet/archive/archive-store.ts'
import { refuseUnreachable } from '../../outlet/archive/check-reach.ts'
import { refuseUnfitTarget } from '../../outlet/backup/move/check-target.ts'
import { type Moved, moveLedger, withClient } from '../../outlet/backup/move/move-ledger.ts'
import { createLogger, type Logger } from '../../platform/logger.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import { Database } from '../../platform/pg/database.ts'
import { migrate } from '../../platform/pg/migrate.ts'
import { hostAndPort, parseDatabaseUrl } from '../../platform/pg/server-address.ts'
import { ServerList } from '../../platform/pg/servers.ts'
import { monotonicClock as clock, systemClock } from '../../platform/time/clock.ts'
import { printJson, printLines } from '../output/print.ts'
import { ProgressLine } from '../output/progress-line.ts'
import { readLine } from '../bootstrap-password.ts'
import { openCommandDataSource } from '../open-command-data-source.ts'
import { count } from '../output/format.ts'
import { CopyVerifier } from './verify-copy.ts'

export type MoveCommandOptions = {
  to?: string
  stopSeconds?: string
  cancel?: true
  targetIsGone?: true
  json?: true
}

/** One for the copy, one that stops writes, and one to find out whether a lost commit succeeded. */
const SOURCE_CONNECTIONS_MAX = 3
const TARGET_CONNECTIONS_MAX = 2
const READER_CONNECTIONS_MAX = 2
const STOP_SECONDS = { default: 30, min: 1, max: 3_600 }
const STEPS = {
  events: 'Events',
  tables: 'Tables',
  verify: 'Verified events',
  lastTables: 'Last tables',
}

/** `annals move`: copies the ledger to another PostgreSQL while the service runs, and stops writes for the last step. */
export async function moveTo(config: Config, options: MoveCommandOptions): Promise<void> {
  const startedAtMs = clock()
  const stopMsMax = parseStopSeconds(options.stopSeconds) * 1_000
  const logger = createLogger('warn', 'stderr')
  await using stack = new AsyncDisposableStack()
  const to = await connectTo(options.to)
  const dataSource = stack.use(await openSource(config, logger))
  const source = stack.use(openAsOwner(dataSource.connection, SOURCE_CONNECTIONS_MAX, logger))
  const target = stack.use(openAsOwner(to, TARGET_CONNECTIONS_MAX, logger))
  const archive = stack.use(openArchive(config, { readArchiveId: () => readArchiveId(source.db) }))
  await refuseNoArchive(config, source, archive, logger)
  await prepareTarget(to, target, logger)
  const reader = stack.use(
    new Database({
      connection: to,
      role: 'annals_serving',
      connectionsMax: READER_CONNECTIONS_MAX,
      logger,
    }),
  )
  const progress = stack.use(new ProgressLine())
  const show = (step: keyof typeof STEPS, done: number, total: number) =>
    progress.show(STEPS[step], done, total)
  const notes: string[] = []
  const verifier = new CopyVerifier({
    source,
    target: reader,
    archive,
    onEvents: (done, total) => show('verify', done, total),
    onNote: (note) => notes.push(note),
  })
  const address = { source: addressOfSource(config), target: await addressOf(to, target) }
  const moved = await moveLedger({
    source,
    target,
    address,
    stopMsMax,
    onProgress: show,
    verifyCopy: () => verifier.verifyAll(),
    verifyRest: (heads) => verifier.verifyRest(heads),
  })
  progress[Symbol.dispose]()
  const seconds = (clock() - startedAtMs) / 1_000
  printSummary(config, options, { ...moved, target: address.target, notes, seconds })
}

/** Also used by `--cancel`. */
export async function openSource(config: Config, logger: Logger): Promise<DataSource> {
  return await openCommandDataSource(config, { logger, mayCreate: false, mayBeMoved: true })
}

/** Every user of the machine can read command lines, so the address can also come from standard input. */
export async function connectTo(to: string | undefined): Promise<ServerList> {
  if (to === undefined) {
    throw new OperatorError('Add --to with the address of the PostgreSQL to move to.')
  }
  const url = to === '-' ? await readLine(process.stdin, 'The address on standard input') : to
  try {
    return new ServerList(parseDatabaseUrl(url))
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new OperatorError(`--to ${reason}.`, { cause: error })
  }
}

export function openAsOwner(
  connection: DataSource['connection'],
  connectionsMax: number,
  logger: Logger,
): Database {
  return new Database({ connection, role: 'owner', connectionsMax, name: 'annals move', logger })
}

function parseStopSeconds(text: string | undefined): number {
  if (text === undefined) return STOP_SECONDS.default
  try {
    return integer(STOP_SECONDS.min, STOP_SECONDS.max)(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new OperatorError(`--stop-seconds ${reason}.`, { cause: error })
  }
}

/** The target's nodes need the archive, and so does the verification of archived events. */
async function refuseNoArchive(
  config: Config,
  source: Database,
  archive: ObjectStore,
  logger: Logger,
): Promise<void> {
  if (archiveUrlOf(config) === null) {
    if ((await findNewestSegment(source.db, null)) === null) return
    throw new OperatorError(
      'Nothing was moved, because this ledger has archived events, but no archive is configured. Set ANNALS_ARCHIVE_URL as for the service.',
    )
  }
  try {
    await refuseOtherArchive({ database: source, archive, clock: systemClock, logger })
    await refuseUnreachable({ database: source, archive })
  } catch (error) {
    if (!isRefusal(error)) throw error
    const reason = error.message.replace(/ Nothing was archived\.$/, '')
    throw new OperatorError(`Nothing was moved. ${reason}`, { cause: error })
  }
}

/** Checks before it changes anything, so that a refused target stays as it was. */
async function prepareTarget(to: ServerList, target: Database, logger: Logger): Promise<void> {
  const checkRights = () => withClient(target, refuseUnfitTarget)
  await checkRights().catch((error: unknown) => {
    if (error instanceof OperatorError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new OperatorError(`Nothing was moved: can't use the target (${reason}).`, {
      cause: error,
    })
  })
  await migrate({ connection: to, logger, mayBeMoved: true })
}

function addressOfSource({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl === null) return `the embedded engine in ${resolve(dataDir)}`
  return parseDatabaseUrl(databaseUrl.reveal()).servers.map(hostAndPort).join(',')
}

async function addressOf({ servers }: ServerList, target: Database): Promise<string> {
  const { rows } = await target.pool.query<{ name: string }>('select current_database() as name')
  return `${servers.map(hostAndPort).join(',')}/${rows[0]?.name ?? ''}`
}

type Summary = Moved & { target: string; notes: readonly string[]; seconds: number }

function printSummary(config: Config, { json }: MoveCommandOptions, summary: Summary): void {
  const { heads, stoppedMs, target, notes } = summary
  const events = heads.reduce((sum, { seq }) => sum + seq, 0)
  const archivedEvents = heads.reduce((sum, { archivedSeq }) => sum + archivedSeq, 0)
  const archiveUrl = archiveUrlOf(config)
  if (json) {
    const round = (seconds: number) => Math.round(seconds * 1_000) / 1_000
    const result = {
      target,
      workspaces: heads.length,
      events,
      archivedEvents,
      seconds: round(summary.seconds),
      stoppedSeconds: stoppedMs === null ? null : round(stoppedMs / 1_000),
      archiveUrl,
      notes,
    }
    printJson(result)
    return
  }
  const took =
    stoppedMs === null
      ? 'An earlier run of the command had copied and verified everything.'
      : `The last step took ${(stoppedMs / 1_000).toFixed(1)} s.`
  printLines(
    `Moved and verified ${count(events)} events of ${count(heads.length)} workspaces to ${target}. ${took}`,
    ...notes.map((note) => `note: ${note}`),
    'This database now refuses all writes. Stop the service, and start it with:',
    '  ANNALS_DATABASE_URL      the address in --to',
    `  ${secretKeyLine(config)}`,
    archiveUrl === null
      ? '  ANNALS_ARCHIVE_URL       an archive, if events are to be archived and signed'
      : `  ANNALS_ARCHIVE_URL       ${archiveUrl}, or where you copy all of its files`,
    'Keep the old database until you have a backup of the new one.',
  )
}

function secretKeyLine({ secretKey, secretKeyFile, dataDir }: Config): string {
  if (secretKey !== null || secretKeyFile !== null) {
    return 'the same secret key as now (ANNALS_SECRET_KEY or ANNALS_SECRET_KEY_FILE)'
  }
  return `ANNALS_SECRET_KEY_FILE   ${join(resolve(dataDir), 'secret.key')}, or a copy of it`
}
