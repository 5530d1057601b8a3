import type { CompanyId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import type { AuditEntry } from '../../tenancy/caller.ts'
import type { ArchiveReport } from './archive-ledger.ts'

/** Writes one audit entry for each company with workspaces that could not be archived. */
export async function recordFailures(
  failures: ArchiveReport['failures'],
  write: (companyId: CompanyId, entry: AuditEntry) => Promise<void>,
  logger: Logger,
): Promise<void> {
  for (const [companyId, workspaces] of Map.groupBy(failures, (workspace) => workspace.companyId)) {
    const metadata = { workspaceIds: workspaces.map(({ workspaceId }) => workspaceId) }
    const resource = { type: 'company', id: companyId }
    try {
      await write(companyId, { action: 'ARCHIVE_FAILED', resource, metadata })
    } catch (error) {
      logger.warn({ event: 'archive.not-audited', companyId, err: error })
    }
  }
}
