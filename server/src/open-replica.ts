import type { Config } from './config.ts'
import { type ChainReads, readsFrom } from './ledger/replica/chain-reads.ts'
import { ReplicaReads } from './ledger/replica/replica-reads.ts'
import { REPLICA_STATEMENT_MS_MAX } from './ledger/replica/replica-session.ts'
import type { Logger } from './platform/logger.ts'
import { Database } from './platform/pg/database.ts'
import { parseReplicaUrl } from './platform/pg/server-address.ts'
import { ServerList } from './platform/pg/servers.ts'
import type { MonotonicClock } from './platform/time/clock.ts'

/** As many as the main pool has, because it serves the same reads. */
const CONNECTIONS_MAX = 20

type Parts = {
  config: Pick<Config, 'replicaUrl'>
  database: Database
  logger: Logger
  monotonic: MonotonicClock
  timeoutFactor: number
  cutSignal: AbortSignal
}

type OpenReplica = {
  reads: ChainReads
  replica: Database | null
  replicaReads: ReplicaReads | null
}

/** Where chains are read: on the replica if there is one, which need not respond yet, and else on the primary. */
export function openReplica(
  stack: AsyncDisposableStack,
  { config, database, ...parts }: Parts,
): OpenReplica {
  if (config.replicaUrl === null) {
    return { reads: readsFrom(database), replica: null, replicaReads: null }
  }
  const replica = stack.use(
    new Database({
      ...parts,
      connection: new ServerList(parseReplicaUrl(config.replicaUrl.reveal())),
      role: 'annals_serving',
      connectionsMax: CONNECTIONS_MAX,
      statementMsMax: REPLICA_STATEMENT_MS_MAX,
      name: 'annals replica',
    }),
  )
  const replicaReads = stack.use(new ReplicaReads({ ...parts, primary: database, replica }))
  return { reads: replicaReads, replica, replicaReads }
}
