import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import type { ObjectStore } from '../../platform/object-store.ts'
import type { Database } from '../../platform/pg.ts'
import { condemnDraft, type Draft, listDrafts, removeDraft } from './draft-store.ts'

type ClearDeps = { database: Database; store: ObjectStore; logger: Logger }

/** An archiver leaves one behind when it dies. More than these wait for the next run. */
const DRAFTS_MAX = 100

/** Deletes what archivers that died have left of a workspace. For who holds its lock. */
export async function clearDrafts(deps: ClearDeps, workspaceId: WorkspaceId): Promise<void> {
  const drafts = await listDrafts(deps.database.db, { workspaceId, limit: DRAFTS_MAX })
  for (const draft of drafts) await clearDraft(deps, draft)
}

/**
 * Deletes a draft's file, unless the catalogue names it, and then the draft.
 *
 * This can never delete a file that will be catalogued, whoever else is at work, with or without the
 * lock. The catalogue takes a file in the statement that ends its draft, and only while the draft is
 * not condemned; a file is deleted only after its draft was condemned; both change the same row, so
 * one comes first. And no name is given twice, so the deleted file is not somebody's next one. Nor is
 * a file forgotten: the row goes after the file.
 *
 * A storage that refuses to delete is no reason to keep events hot: the draft waits for the next run.
 */
export async function clearDraft(
  { database: { db }, store, logger }: ClearDeps,
  draft: Draft,
): Promise<void> {
  try {
    if (await condemnDraft(db, draft)) await store.delete(draft.objectKey)
    await removeDraft(db, draft)
  } catch (error) {
    logger.warn({ event: 'draft.kept', ...draft, err: error })
  }
}
