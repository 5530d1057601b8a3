import { parseConfig } from '../../config.ts'
import { OperatorError } from '../../errors.ts'
import { isRefusal } from '../../outlet/archive/archive-deps.ts'
import { StorageError } from '../../platform/object-store/object-store.ts'
import { isOutage, isRetryable, sqlStateOf } from '../../platform/pg/database.ts'
import { messageOf } from '../../platform/pg/pg-error.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import { type Check, type Finding, finding, type OpenLedger } from './check.ts'
import { LEDGER_CHECKS, MACHINE_CHECKS } from './checks.ts'
import { openLedger } from './open-ledger.ts'
import { Report } from './report.ts'

export type DoctorOptions = { backup?: string; json?: true }

/** Longer than any check takes on a busy machine. A server that doesn't respond needs two timeouts. */
const CHECK_MS_MAX = 10_000
const DATABASE_MS_MAX = 20_000

/**
 * `annals doctor`: runs every check, whether the service runs or not, and changes nothing. Exits with code 1 if one
 * failed.
 */
export async function runDoctor(env: NodeJS.ProcessEnv, options: DoctorOptions): Promise<void> {
  const report = new Report(options.json === true)
  const configured = readConfigFinding(env)
  report.add('configuration', configured.found)
  if (configured.config === null) {
    const names = [...nameAll(MACHINE_CHECKS), 'database', ...nameAll(LEDGER_CHECKS)]
    report.skip(names, 'The configuration is invalid.')
    report.finish()
    return
  }
  const machine = { config: configured.config, backupFolder: options.backup ?? null }
  const unknown = await runChecks(report, MACHINE_CHECKS, machine)
  const isKeyReadable = !unknown.has('secret key file')
  await using stack = new AsyncDisposableStack()
  let ledger: OpenLedger | null = null
  const found = await within(DATABASE_MS_MAX, async () => {
    const opened = await openLedger(machine, { stack, isKeyReadable })
    ledger = opened.ledger
    return opened.found
  })
  report.add('database', found)
  await checkLedger(report, ledger)
  report.finish()
}

function readConfigFinding(env: NodeJS.ProcessEnv) {
  try {
    const config = parseConfig(env)
    return {
      config,
      found: finding.ok('All variables are valid. To see them: annals config print'),
    }
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    const advice = 'Fix every variable that is listed. docs/configuration.md describes them.'
    return { config: null, found: finding.failed(error.message, advice) }
  }
}

async function checkLedger(report: Report, ledger: OpenLedger | null): Promise<void> {
  if (ledger === null) {
    report.skip(nameAll(LEDGER_CHECKS), 'This needs the database.')
    return
  }
  await runChecks(report, LEDGER_CHECKS, ledger)
}

/** Returns the names of the checks that failed or were skipped. */
async function runChecks<Subject>(
  report: Report,
  checks: readonly Check<Subject>[],
  subject: Subject,
): Promise<ReadonlySet<string>> {
  const failed = new Set<string>()
  const unknown = new Set<string>()
  for (const { name, run, needs } of checks) {
    const found = failed.has(needs ?? '')
      ? finding.skipped(`This depends on the ${needs}, which failed.`)
      : await within(CHECK_MS_MAX, () => run(subject))
    if (found.status === 'failed') failed.add(name)
    if (found.status === 'failed' || found.status === 'skipped') unknown.add(name)
    report.add(name, found)
  }
  return unknown
}

function nameAll(checks: readonly { name: string }[]): string[] {
  return checks.map(({ name }) => name)
}

async function within(timeoutMs: number, run: () => Promise<Finding>): Promise<Finding> {
  const late = () => new OperatorError(`This took more than ${timeoutMs / 1_000} seconds.`)
  try {
    return await withDeadline(run(), { timeoutMs, late })
  } catch (error) {
    return findingOf(error)
  }
}

/** A missing table or column, which a pending migration creates. */
const MISSING = ['42P01', '42703']

/** The sentences with which a start or another command refuses to continue. */
function findingOf(error: unknown): Finding {
  const isSentence =
    error instanceof OperatorError || error instanceof StorageError || isRefusal(error)
  if (isSentence) {
    // The archiver's sentences end with what it did not do.
    const message = error.message.replace(
      / (Nothing|No event of this workspace) was archived\.$/,
      '',
    )
    return finding.failed(message, 'See "Error messages" in docs/operations.md.')
  }
  if (MISSING.includes(sqlStateOf(error) ?? '')) {
    return finding.skipped('A pending migration creates what this reads.')
  }
  if (isOutage(error) || isRetryable(error)) {
    return finding.failed(
      `The database returned an error: ${messageOf(error)}.`,
      'Run annals doctor again. If the error stays, see the log of PostgreSQL.',
    )
  }
  const unreadable = fileFinding(error)
  if (unreadable !== null) return unreadable
  return finding.failed(
    `The check itself failed: ${messageOf(error)}.`,
    'This is a bug in Annals, or the database was changed by hand. Please report it.',
  )
}

/** What keeps this process from reading a file. Null if it is not that. */
function fileFinding(error: unknown): Finding | null {
  if (!(error instanceof Error) || !('code' in error) || !('path' in error)) return null
  const path = String(error.path)
  if (error.code === 'EACCES' || error.code === 'EPERM') {
    return finding.failed(
      `This user can't read ${path}.`,
      'Run annals doctor as the user of the service.',
    )
  }
  if (error.code !== 'ENOTDIR') return null
  return finding.failed(
    `${path} is in something that is not a folder.`,
    'Set ANNALS_DATA_DIR to the data folder.',
  )
}
