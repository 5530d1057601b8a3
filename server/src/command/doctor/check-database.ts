import { NODE_TIMES } from '../../platform/node/node-presence.ts'
import { readClockOffset } from '../../platform/time/shared-clock.ts'
import { HOUR_MS } from '../../platform/time/time-units.ts'
import { type Finding, finding, type OpenLedger } from './check.ts'
import { countNodes, listPermissionFaults, readServerSettings } from './doctor-store.ts'

export async function checkMigrations({ schema }: OpenLedger): Promise<Finding> {
  const { pending, isNewer } = schema
  if (isNewer) {
    return finding.warning(
      "The database has migrations that this program doesn't know.",
      'A newer version of Annals uses this database. Upgrade this installation too.',
    )
  }
  if (pending.length === 0) return finding.ok('All migrations are applied.')
  const names = pending.map(({ name }) => name).join(', ')
  return finding.warning(
    `Pending migrations: ${names}.`,
    'The next start applies them. To apply them now, run: annals migrate',
  )
}

export async function checkPermissions({ database }: OpenLedger): Promise<Finding> {
  const faults = await listPermissionFaults(database.db)
  if (faults.length === 0) return finding.ok('The roles have the permissions that they need.')
  const texts = faults.map(
    ({ role, table, privilege, isGranted }) =>
      `${role} ${isGranted ? 'can' : "can't"} ${privilege} rows of ${table}`,
  )
  const [first] = faults
  const change = first?.isGranted ? 'revoke' : 'grant'
  const side = first?.isGranted ? 'from' : 'to'
  return finding.failed(
    `Permissions were changed: ${texts.join('; ')}.`,
    `As the owner of the tables, run for each: ${change} ${first?.privilege} on ${first?.table} ${side} ${first?.role}`,
  )
}

/** Fewer leave no room for the operator and for backups. */
const FREE_CONNECTIONS_MIN = 10
const PAGE_COST_MAX = 2

export async function checkServer({ config, database }: OpenLedger): Promise<Finding> {
  const settings = await readServerSettings(database.db)
  if (settings.isReadOnly) {
    return finding.failed(
      'The database is read-only or a standby.',
      'Set ANNALS_DATABASE_URL to the address of the primary, or list all servers: postgres://…@a:5432,b:5432/annals.',
    )
  }
  if (settings.fsync === 'off' || settings.fullPageWrites === 'off') {
    const name = settings.fsync === 'off' ? 'fsync' : 'full_page_writes'
    return finding.failed(
      `${name} is off, so a power failure can lose or damage events.`,
      `Set ${name} = on in the configuration of PostgreSQL.`,
    )
  }
  if (settings.freeConnections < FREE_CONNECTIONS_MIN) {
    return finding.warning(
      `PostgreSQL has only ${settings.freeConnections} free connections.`,
      'Raise max_connections, or end programs that use many connections.',
    )
  }
  if (config.databaseUrl !== null && settings.randomPageCost > PAGE_COST_MAX) {
    return finding.warning(
      `random_page_cost is ${settings.randomPageCost}, so PostgreSQL avoids indexes that queries need.`,
      'On SSDs, set random_page_cost = 1.1 in the configuration of PostgreSQL.',
    )
  }
  return finding.ok(`Writes are durable, and ${settings.freeConnections} connections are free.`)
}

/** The limits of docs/operations.md, "System clock". */
const SKEW_MS_MAX = 5_000

export async function checkClock({ config, database }: OpenLedger): Promise<Finding> {
  const { offsetMs, durationMs } = await readClockOffset(database.db)
  const differenceMs = Math.max(0, Math.abs(offsetMs) - durationMs / 2)
  const text = `This machine's clock is ${(Math.abs(offsetMs) / 1_000).toFixed(1)} s ${offsetMs < 0 ? 'ahead of' : 'behind'} the database's.`
  const advice = 'Synchronize the clocks of all nodes and of the database server with NTP.'
  if (differenceMs > HOUR_MS) return finding.failed(`${text} Nothing is archived.`, advice)
  if (differenceMs > SKEW_MS_MAX) return finding.warning(text, advice)
  if (config.databaseUrl === null) {
    return finding.ok("The embedded engine uses this machine's clock, so there is no difference.")
  }
  return finding.ok(text)
}

export async function checkNodes({ database }: OpenLedger): Promise<Finding> {
  const roles = await countNodes(database.db, { silentMsMax: NODE_TIMES.deadMs })
  if (roles.length === 0) return finding.ok('No node is running.')
  const text = `Running nodes: ${roles.map(({ role, nodes }) => `${nodes} with the role ${role}`).join(', ')}.`
  const hasRole = (...wanted: string[]) => roles.some(({ role }) => wanted.includes(role))
  if (!hasRole('all', 'worker')) {
    return finding.warning(
      `${text} None does background work, such as webhooks, checkpoints and archiving.`,
      'Start a node with --role worker or --role all.',
    )
  }
  if (!hasRole('all', 'api')) {
    return finding.warning(
      `${text} None serves requests.`,
      'Start a node with --role api or --role all.',
    )
  }
  return finding.ok(text)
}
