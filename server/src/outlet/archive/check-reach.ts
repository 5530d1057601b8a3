import type { WorkspaceId } from '../../platform/id.ts'
import { StorageError } from '../../platform/object-store.ts'
import { type ArchiveDeps, ArchiveOutOfReachError } from './archive-deps.ts'
import { findNewestSegment } from './archive-store.ts'

type ReachDeps = Pick<ArchiveDeps, 'database' | 'store'>

/**
 * Refuses to archive into storage that lacks the newest segment of the whole catalog or of a workspace.
 * It makes one storage request, however large the archive is. A second archiver with different storage
 * stops here as soon as the first one has cataloged a segment.
 */
export async function refuseOutOfReach(
  { database: { db }, store }: ReachDeps,
  workspaceId: WorkspaceId | null = null,
): Promise<void> {
  const segment = await findNewestSegment(db, workspaceId)
  if (segment === null) return
  const { objectKey, firstSeq, lastSeq } = segment
  const where = `${objectKey} (events ${firstSeq} to ${lastSeq} of workspace ${segment.workspaceId})`
  try {
    if ((await store.stat(objectKey)) !== null) return
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    const reason = `cannot look up the archived segment ${where}: ${error.message}`
    throw new ArchiveOutOfReachError(`${reason} Nothing was archived.`, { cause: error })
  }
  throw new ArchiveOutOfReachError(
    `this node's archive lacks the segment ${where}. Set ANNALS_ARCHIVE_URL to the archive that has it. Nothing was archived.`,
  )
}
