import type { WorkspaceId } from '../../platform/id.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store.ts'
import { type ArchiveDeps, ArchiveOutOfReachError } from './archive-deps.ts'
import { findNewestSegment } from './archive-store.ts'

type ReachDeps = Pick<ArchiveDeps, 'database' | 'store'>

/**
 * Refuses to archive into a storage that does not have the newest segment, of the whole catalog or of
 * one workspace, such as a storage that was restored from an old backup. It costs one request, whatever
 * the archive holds. That there is only one storage is ensured by `archive-identity.ts`.
 */
export async function refuseOutOfReach(
  { database: { db }, store }: ReachDeps,
  workspaceId: WorkspaceId | null = null,
): Promise<void> {
  const segment = await findNewestSegment(db, workspaceId)
  if (segment === null) return
  const { objectKey, firstSeq, lastSeq } = segment
  const where = `${objectKey} (events ${firstSeq} to ${lastSeq} of workspace ${segment.workspaceId})`
  if (await hasObject(store, objectKey, `the archived segment ${where}`)) return
  const extent = workspaceId === null ? 'Nothing' : 'No event of this workspace'
  throw new ArchiveOutOfReachError(
    `the catalog names the segment ${where}, which this node's archive does not have. Set ANNALS_ARCHIVE_URL to the archive that holds it. ${extent} was archived.`,
  )
}

/** Throws an `ArchiveOutOfReachError` when the storage doesn't say; `what` names the object in it. */
export async function hasObject(store: ObjectStore, key: string, what: string): Promise<boolean> {
  try {
    return (await store.stat(key)) !== null
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    const reason = `cannot look for ${what}: ${error.message}`
    throw new ArchiveOutOfReachError(`${reason} Archiving stopped.`, { cause: error })
  }
}
