import type { WorkspaceId } from '../../platform/id.ts'
import { StorageError } from '../../platform/object-store.ts'
import { type ArchiveDeps, ArchiveOutOfReachError } from './archive-deps.ts'
import { findNewestSegment } from './archive-store.ts'

type ReachDeps = Pick<ArchiveDeps, 'database' | 'store'>

/**
 * Refuses to archive into a storage that does not have the newest segment: of the whole catalogue, or
 * of a workspace. One request to the storage, whatever the archive holds. A second archiver with
 * another storage stops here as soon as the first one has catalogued a segment.
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
    const reason = `cannot look for the archived segment ${where}: ${error.message}`
    throw new ArchiveOutOfReachError(`${reason} Nothing was archived.`, { cause: error })
  }
  throw new ArchiveOutOfReachError(
    `the catalogue names the segment ${where}, which this node's archive does not have. Set ANNALS_ARCHIVE_URL to the archive that holds it. Nothing was archived.`,
  )
}
