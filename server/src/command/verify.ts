import type { Config } from '../config.ts'
import { verifyChain } from '../outlet/verify/verify-ledger.ts'
import { createLogger } from '../platform/logger.ts'
import { Database } from '../platform/pg.ts'
import { openStore } from '../store.ts'
import { listAllWorkspaces } from '../tenancy/workspace-store.ts'

/** `annals verify`: exit code 1, and the first bad event of each chain, when the ledger does not hold. */
export async function verify(config: Config): Promise<void> {
  const logger = createLogger('warn', 'stderr')
  await using store = await openStore(config, { logger, exclusive: false })
  await using database = new Database({
    connection: store.connection,
    role: 'annals_serving',
    connectionsMax: 1,
    logger,
  })
  let events = 0
  let broken = 0
  const workspaceIds = await listAllWorkspaces(database.db)
  for (const workspaceId of workspaceIds) {
    const verdict = await verifyChain(database.db, workspaceId)
    events += verdict.events
    if (verdict.ok) continue
    broken += 1
    const which = verdict.id === null ? 'no event there' : `event ${verdict.id}`
    process.stdout.write(
      `BROKEN workspace ${workspaceId} at seq ${verdict.seq} (${which}): ${verdict.problem}\n`,
    )
  }
  process.stdout.write(
    broken === 0
      ? `ok: ${events} events in ${workspaceIds.length} workspaces, every chain holds\n`
      : `FAILED: ${broken} of ${workspaceIds.length} chains do not hold\n`,
  )
  if (broken > 0) process.exitCode = 1
}
