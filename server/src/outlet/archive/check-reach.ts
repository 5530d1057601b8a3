import type { WorkspaceId } from '../../platform/id.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import { type ArchiveDeps, ArchiveUnreachableError } from './archive-deps.ts'
import { findNewestSegment } from './archive-store.ts'

type ReachDeps = Pick<ArchiveDeps, 'database' | 'archive'>

/**
 * Throws if the storage doesn't have the newest segment, of the whole catalog or of one workspace, such as
 * a storage restored from an old backup. It takes one request, however large the archive is.
 * `archive-identity.ts` ensures that there is only one storage.
 */
export async function refuseUnreachable(
  { database: { db }, archive }: ReachDeps,
  workspaceId: WorkspaceId | null = null,
): Promise<void> {
  const segment = await findNewestSegment(db, workspaceId)
  if (segment === null) return
  const { objectKey, firstSeq, lastSeq } = segment
  const where = `${objectKey} (events ${firstSeq} to ${lastSeq} of workspace ${segment.workspaceId})`
  if (await hasObject(archive, objectKey, `the archived segment ${where}`)) return
  const extent = workspaceId === null ? 'Nothing' : 'No event of this workspace'
  throw new ArchiveUnreachableError(
    `The catalog lists the segment ${where}, but this node's archive doesn't have it. Set ANNALS_ARCHIVE_URL to the archive that contains it. ${extent} was archived.`,
  )
}

/** Throws an `ArchiveUnreachableError` if the storage fails. `what` names the object in the message. */
export async function hasObject(archive: ObjectStore, key: string, what: string): Promise<boolean> {
  try {
    return (await archive.stat(key)) !== null
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    const reason = `Can't check for ${what}: ${error.message}`
    throw new ArchiveUnreachableError(`${reason} Nothing was archived.`, { cause: error })
  }
}
