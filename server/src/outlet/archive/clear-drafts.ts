import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import {
  markDraftForDeletion,
  type Draft,
  draftMarkKeyOf,
  listDrafts,
  deleteDraftRow,
} from './draft-store.ts'

type ClearDeps = { database: Database; archive: ObjectStore; logger: Logger }

/** Per run. An archiver that crashes leaves one draft behind. */
const DRAFTS_MAX = 100

/**
 * Deletes the files that crashed archivers left for a workspace. Call it with the workspace's lock held. A
 * file without its mark is kept, because another database may name it in its catalog: if this database is
 * an older backup of that one, it has the draft but not the catalog entry.
 */
export async function clearDrafts(deps: ClearDeps, workspaceId: WorkspaceId): Promise<void> {
  const drafts = await listDrafts(deps.database.db, { workspaceId, limit: DRAFTS_MAX })
  for (const draft of drafts) {
    await clear(deps, draft, async ({ archive }) => {
      const isMarked = (await archive.stat(draftMarkKeyOf(draft))) !== null
      if (isMarked) await deleteFiles(archive, draft)
      else if ((await archive.stat(draft.objectKey)) !== null) throw new DraftPublishedError()
    })
  }
}

/** For the archiver that wrote the draft. No other database can name its file yet. */
export async function clearOwnDraft(deps: ClearDeps, draft: Draft): Promise<void> {
  await clear(deps, draft, async ({ archive }) => await deleteFiles(archive, draft))
}

/** Deletes the mark last, so that the next run still finds it after a crash in between. */
async function deleteFiles(archive: ObjectStore, draft: Draft): Promise<void> {
  await archive.delete(draft.objectKey)
  await archive.delete(draftMarkKeyOf(draft))
}

/**
 * Deletes a small file that nothing reads anymore. If the credentials don't allow that, the file stays and
 * archiving continues.
 */
export async function deleteIfAllowed(
  { archive, logger }: Pick<ClearDeps, 'archive' | 'logger'>,
  objectKey: string,
): Promise<void> {
  try {
    await archive.delete(objectKey)
  } catch (error) {
    if (!(error instanceof StorageError && error.isDenied)) throw error
    logger.warn({ event: 'draft.kept', objectKey, err: error })
  }
}

class DraftPublishedError extends Error {
  override name = 'DraftPublishedError'
  override message =
    "The file is complete, but the catalog of this database doesn't list it. If no other database uses this archive, delete the file."
}

/**
 * Deletes a draft's files, unless the catalog names them, and then the draft.
 *
 * It can never delete a file that this database will catalog, even if another archiver runs without the
 * lock. The statement that catalogs a file deletes its draft row, and only if the draft isn't marked for deletion. A
 * file is deleted only after its draft is marked. Both change the same row, so one of them comes first.
 * Names are never reused. No file is forgotten either, because the row is deleted after the file.
 *
 * If the storage refuses to delete, the draft stays for the next run and archiving continues.
 */
async function clear(
  deps: ClearDeps,
  draft: Draft,
  deleteObjects: (deps: ClearDeps) => Promise<void>,
): Promise<void> {
  const { db } = deps.database
  try {
    if (await markDraftForDeletion(db, draft)) await deleteObjects(deps)
    await deleteDraftRow(db, draft)
  } catch (error) {
    deps.logger.warn({ event: 'draft.kept', ...draft, err: error })
  }
}
