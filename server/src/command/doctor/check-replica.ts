import { setTimeout as delay } from 'node:timers/promises'
import { compare } from '../../ledger/replica/chain-position.ts'
import { findChainPosition } from '../../ledger/replica/chain-position-store.ts'
import { createLogger } from '../../platform/logger.ts'
import { Database, type Queryable } from '../../platform/pg/database.ts'
import { messageOf } from '../../platform/pg/pg-error.ts'
import { hostAndPort, parseReplicaUrl } from '../../platform/pg/server-address.ts'
import { ServerList } from '../../platform/pg/servers.ts'
import { type Finding, finding, type OpenLedger } from './check.ts'
import { listNewestChains } from './doctor-store.ts'

const STATEMENT_MS_MAX = 5_000
const CHAINS_MAX = 10
/** A replica that needs longer serves few queries. */
const CATCH_UP_TRIES = 10
const CATCH_UP_EVERY_MS = 100

/** Whether the service can read from the replica. If not, the primary serves all reads. */
export async function checkReplica({
  config,
  database,
}: Pick<OpenLedger, 'config' | 'database'>): Promise<Finding> {
  if (config.replicaUrl === null) {
    return finding.skipped('ANNALS_DATABASE_REPLICA_URL is not set.')
  }
  const address = parseReplicaUrl(config.replicaUrl.reveal())
  const where = address.servers.map(hostAndPort).join(', ')
  await using replica = new Database({
    connection: new ServerList(address),
    role: 'annals_serving',
    connectionsMax: 1,
    statementMsMax: STATEMENT_MS_MAX,
    name: 'annals doctor',
    logger: createLogger('silent'),
  })
  const advice =
    'Until then, the primary serves all queries. Set ANNALS_DATABASE_REPLICA_URL to a streaming standby of the database, and check that it replays without delay.'
  try {
    const problem = await findProblem(database.db, replica.db)
    if (problem !== null) return finding.warning(`The replica at ${where} ${problem}.`, advice)
    return finding.ok(`The replica at ${where} has all events.`)
  } catch (error) {
    return finding.warning(`Can't read from the replica at ${where}: ${messageOf(error)}.`, advice)
  }
}

/** Continues a sentence about the replica. Null if there is no problem. */
async function findProblem(primary: Queryable, replica: Queryable): Promise<string | null> {
  for (const workspaceId of await listNewestChains(primary, { limit: CHAINS_MAX })) {
    const position = await findChainPosition(primary, workspaceId)
    if (position === null) continue
    for (let left = CATCH_UP_TRIES; ; left -= 1) {
      const reached = await findChainPosition(replica, workspaceId)
      if (reached !== null && !reached.isStandby) return 'is not a standby'
      const comparison = compare(position, reached)
      if (comparison === 'other') return 'has another history than the primary'
      if (comparison !== 'behind') break
      if (left === 0) return 'does not have the newest events'
      await delay(CATCH_UP_EVERY_MS)
    }
  }
  return null
}
