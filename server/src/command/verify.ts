import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'
import { readArchiveId } from '../outlet/archive/archive-identity-store.ts'
import { SegmentUnreadableError } from '../outlet/verify/verify-archive.ts'
import { verifyChain } from '../outlet/verify/verify-ledger.ts'
import { failureOf, outcomeOf } from '../outlet/verify/verify-outcome.ts'
import { openArchive } from '../data-source.ts'
import { listAllWorkspaces } from '../tenancy/workspace/workspace-store.ts'
import { openDatabase } from './open-database.ts'
import { recordVerdicts, type WorkspaceVerdict } from './record-verdicts.ts'

/**
 * `annals verify`: exits with code 1 if a chain is broken, and names its first bad event. Also exits with
 * code 1 if an archived file that a chain needs can't be read, or if there are no chains. Each company gets
 * its verdict in its audit log.
 */
export async function verify(config: Config): Promise<void> {
  await using database = await openDatabase(config, { mayCreate: false })
  await using archive = openArchive(config, {
    readArchiveId: () => readArchiveId(database.db),
  })
  let events = 0
  let broken = 0
  let unchecked = 0
  const verdicts: WorkspaceVerdict[] = []
  const workspaces = await listAllWorkspaces(database.db)
  if (workspaces.length === 0) {
    throw new OperatorError(
      'Nothing was verified, because the database has no workspaces. Check that it is the right database.',
    )
  }
  for (const { id: workspaceId, companyId } of workspaces) {
    const verdict = await verifyChain(database.db, archive, workspaceId).catch(unreadableOf)
    if (verdict instanceof SegmentUnreadableError) {
      verdicts.push({ companyId, workspaceId, outcome: failureOf(verdict) })
      unchecked += 1
      process.stdout.write(
        `UNREADABLE workspace ${workspaceId} at seq ${verdict.seq}: ${verdict.message}\n`,
      )
      continue
    }
    verdicts.push({ companyId, workspaceId, outcome: outcomeOf(verdict) })
    events += verdict.events
    if (verdict.ok) continue
    broken += 1
    const which = verdict.id === null ? '' : ` (event ${verdict.id})`
    process.stdout.write(
      `BROKEN workspace ${workspaceId} at seq ${verdict.seq}${which}: ${verdict.problem}\n`,
    )
  }
  const total = workspaces.length
  const faults = [
    ...(broken > 0 ? [`${broken} of ${total} chains are broken`] : []),
    ...(unchecked > 0 ? [`${unchecked} of ${total} chains could not be verified`] : []),
  ]
  process.stdout.write(
    faults.length === 0
      ? `ok: ${events} events in ${total} workspaces, every chain is intact\n`
      : `FAILED: ${faults.join(', ')}\n`,
  )
  if (faults.length > 0) process.exitCode = 1
  await recordVerdicts(database.db, verdicts)
}

function unreadableOf(error: unknown): SegmentUnreadableError {
  if (error instanceof SegmentUnreadableError) return error
  throw error
}
