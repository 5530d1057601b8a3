import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store.ts'
import type { Database } from '../../platform/pg.ts'
import { condemnDraft, type Draft, draftMarkKeyOf, listDrafts, removeDraft } from './draft-store.ts'

type ClearDeps = { database: Database; store: ObjectStore; logger: Logger }

/** An archiver leaves one behind when it dies. More than these wait for the next run. */
const DRAFTS_MAX = 100

/**
 * Deletes the files that crashed archivers left of a workspace. Only for the holder of its lock. A file
 * without its mark is kept: another database may name it in its catalog, because a copy of that database,
 * restored from a backup, has the note and not the catalog entry.
 */
export async function clearDrafts(deps: ClearDeps, workspaceId: WorkspaceId): Promise<void> {
  const drafts = await listDrafts(deps.database.db, { workspaceId, limit: DRAFTS_MAX })
  for (const draft of drafts) {
    await clear(deps, draft, async ({ store }) => {
      const isMarked = (await store.stat(draftMarkKeyOf(draft))) !== null
      if (isMarked) await deleteFiles(store, draft)
      else if ((await store.stat(draft.objectKey)) !== null) throw new DraftPublishedError()
    })
  }
}

/** For the archiver that wrote the draft, so no other database can know its file. */
export async function clearOwnDraft(deps: ClearDeps, draft: Draft): Promise<void> {
  await clear(deps, draft, async ({ store }) => await deleteFiles(store, draft))
}

/** The mark goes last: after a crash in between, the next run still finds it. */
async function deleteFiles(store: ObjectStore, draft: Draft): Promise<void> {
  await store.delete(draft.objectKey)
  await store.delete(draftMarkKeyOf(draft))
}

/**
 * For a small file that nothing reads any more. Where the credentials don't allow deleting, it stays and
 * archiving goes on.
 */
export async function deleteIfAllowed(
  { store, logger }: Pick<ClearDeps, 'store' | 'logger'>,
  objectKey: string,
): Promise<void> {
  try {
    await store.delete(objectKey)
  } catch (error) {
    if (!(error instanceof StorageError && error.isDenied)) throw error
    logger.warn({ event: 'draft.kept', objectKey, err: error })
  }
}

class DraftPublishedError extends Error {
  override name = 'DraftPublishedError'
  override message =
    'The file is complete and this database does not name it. Delete it by hand if no other database uses this archive.'
}

/**
 * Deletes a draft's files, unless the catalog names them, and then the draft.
 *
 * This can never delete a file that this database will catalog, even if another archiver is at work
 * without the lock. The catalog takes a file in the statement that ends its draft, and only while the
 * draft is not condemned; a file is deleted only after its draft was condemned; both change the same
 * row, so one comes first. No name is used twice. Nor is a file forgotten: the row goes after the file.
 *
 * If the storage refuses to delete, the draft waits for the next run and archiving goes on.
 */
async function clear(
  deps: ClearDeps,
  draft: Draft,
  deleteDraft: (deps: ClearDeps) => Promise<void>,
): Promise<void> {
  const { db } = deps.database
  try {
    if (await condemnDraft(db, draft)) await deleteDraft(deps)
    await removeDraft(db, draft)
  } catch (error) {
    deps.logger.warn({ event: 'draft.kept', ...draft, err: error })
  }
}
