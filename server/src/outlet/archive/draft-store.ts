import { sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** A file that has been or will be written under this key, and that is not in the catalog. */
export type Draft = { workspaceId: WorkspaceId; objectKey: string }

/**
 * The name of a small file that exists from before the draft is written until just before it is cataloged.
 * It tells every database that uses this archive that no catalog names the draft.
 */
export function draftMarkKeyOf({ objectKey }: Draft): string {
  return `${objectKey}.draft`
}

/** Call it before writing the file, so that the next run finds the file after a crash. */
export async function insertDraft(
  db: Queryable,
  { workspaceId, objectKey }: Draft,
  now: Date,
): Promise<void> {
  await db
    .insertInto('segment_draft')
    .values({ workspace_id: workspaceId, object_key: objectKey, created_at: now })
    .execute()
}

export async function listDrafts(
  db: Queryable,
  { workspaceId, limit }: { workspaceId: WorkspaceId; limit: number },
): Promise<Draft[]> {
  const rows = await db
    .selectFrom('segment_draft')
    .select('object_key')
    .where('workspace_id', '=', workspaceId)
    .orderBy('object_key')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ workspaceId, objectKey: row.object_key }))
}

/**
 * Sets a draft's creation time to `-infinity`, so that the catalog no longer accepts it. Returns false
 * if the catalog names its file, or if the draft is gone.
 */
export async function markDraftForDeletion(
  db: Queryable,
  { workspaceId, objectKey }: Draft,
): Promise<boolean> {
  const { rows } = await sql`
    with draft as (
      delete from segment_draft
       where workspace_id = ${workspaceId} and object_key = ${objectKey}
         and not exists (select from segment
                          where workspace_id = ${workspaceId} and object_key = ${objectKey})
      returning workspace_id, object_key
    )
    insert into segment_draft (workspace_id, object_key, created_at)
    select workspace_id, object_key, '-infinity' from draft
    returning 1`.execute(db)
  return rows.length === 1
}

export async function deleteDraftRow(
  db: Queryable,
  { workspaceId, objectKey }: Draft,
): Promise<void> {
  await db
    .deleteFrom('segment_draft')
    .where('workspace_id', '=', workspaceId)
    .where('object_key', '=', objectKey)
    .execute()
}
