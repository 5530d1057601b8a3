import { hash } from 'node:crypto'
import { footerSha256Of } from '../../ledger/segment/segment-footer.ts'
import { insertSegment } from '../../ledger/segment/segment-store.ts'
import { randomHex } from '../../platform/id.ts'
import { StorageError } from '../../platform/object-store/object-store.ts'
import { type ArchiveDeps, ArchiveRefusedError } from './archive-deps.ts'
import { claimArchive } from './archive-identity.ts'
import { clearOwnDraft, deleteIfAllowed } from './clear-drafts.ts'
import { draftMarkKeyOf, insertDraft } from './draft-store.ts'
import type { EncodedRun } from './encode-runs.ts'

/**
 * Checks every hash in a segment's file against the table's, writes the file under its final name, reads it
 * back, checks that the storage is the archive, and adds the file to the catalog. Rows are removed only after
 * the catalog names a file that was read back from its final location. Returns false if another archiver was
 * first. The file is deleted then, as after a failure.
 */
export async function storeSegment(deps: ArchiveDeps, run: EncodedRun): Promise<boolean> {
  const { db } = deps.database
  const { summary, file, lastId } = run
  const { workspaceId } = summary
  await refuseOtherEvents(deps, run)
  const draft = { workspaceId, objectKey: newObjectKey(run) }
  await insertDraft(db, draft, new Date(deps.clock()))
  let isOurs = false
  try {
    await deps.archive.put(draftMarkKeyOf(draft), DRAFT_MARKER_TEXT)
    await deps.archive.put(draft.objectKey, file)
    await refuseOtherBytes(deps, draft.objectKey, file)
    await claimArchive(deps)
    await deleteIfAllowed(deps, draftMarkKeyOf(draft))
    const segment = {
      ...summary,
      objectKey: draft.objectKey,
      bytes: file.length,
      sha256: hash('sha256', file, 'hex'),
      footerSha256: footerSha256Of(file),
      lastId,
    }
    isOurs = await insertSegment(db, segment, new Date(deps.clock()))
  } finally {
    if (!isOurs) await clearOwnDraft(deps, draft)
  }
  if (isOurs) {
    const { firstSeq, lastSeq } = summary
    const bytes = file.length
    deps.logger.info({ event: 'segment.archived', workspaceId, firstSeq, lastSeq, bytes })
  }
  return isOurs
}

const DRAFT_MARKER_TEXT = Buffer.from('The file beside this one is not in the catalog yet.\n')

/** Names are never reused, so deleting a draft never deletes another archiver's file. */
function newObjectKey({ summary, month }: EncodedRun): string {
  const name = `${String(summary.firstSeq).padStart(16, '0')}-${randomHex(8)}`
  return `${summary.workspaceId}/${month}/${name}.parquet`
}

/** Recomputes each hash from the file's bytes. It must equal the hash in the table. */
async function refuseOtherEvents(
  { readBack }: ArchiveDeps,
  { file, hashes, summary }: EncodedRun,
): Promise<void> {
  const result = await readBack.recompute(file)
  if (result.ok && hashes.equals(result.hashes)) return
  const { firstSeq, lastSeq, workspaceId } = summary
  const problem = result.ok ? 'a hash differs' : result.problem
  throw new ArchiveRefusedError(
    `Events ${firstSeq} to ${lastSeq} of workspace ${workspaceId} don't match their hashes (${problem}). Run annals verify.`,
  )
}

/** Ensures that readers will get exactly the bytes that were checked. */
async function refuseOtherBytes(
  { archive }: ArchiveDeps,
  objectKey: string,
  file: Buffer,
): Promise<void> {
  const stored = await archive.read(objectKey)
  if (stored?.equals(file)) return
  const found = stored === null ? 'nothing' : `${stored.length} bytes that differ`
  throw new StorageError(
    `The segment ${objectKey} was written with ${file.length} bytes, but reading it back returned ${found}. Its events stay in the database.`,
  )
}
