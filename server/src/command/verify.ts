import type { Config } from '../config.ts'
import { verifyChain } from '../outlet/verify/verify-ledger.ts'
import { openArchive } from '../store.ts'
import { listAllWorkspaces } from '../tenancy/workspace-store.ts'
import { openDatabase, refuseNoData } from './open-database.ts'

/** `annals verify`: exit code 1, and the first bad event of each chain, when the ledger does not hold. */
export async function verify(config: Config): Promise<void> {
  refuseNoData(config)
  await using database = await openDatabase(config)
  await using store = openArchive(config)
  let events = 0
  let broken = 0
  const workspaceIds = await listAllWorkspaces(database.db)
  for (const workspaceId of workspaceIds) {
    const verdict = await verifyChain(database.db, store, workspaceId)
    events += verdict.events
    if (verdict.ok) continue
    broken += 1
    const which = verdict.id === null ? '' : ` (event ${verdict.id})`
    process.stdout.write(
      `BROKEN workspace ${workspaceId} at seq ${verdict.seq}${which}: ${verdict.problem}\n`,
    )
  }
  process.stdout.write(
    broken === 0
      ? `ok: ${events} events in ${workspaceIds.length} workspaces, every chain holds\n`
      : `FAILED: ${broken} of ${workspaceIds.length} chains do not hold\n`,
  )
  if (broken > 0) process.exitCode = 1
}
