import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { footerSha256Of } from '../../ledger/segment-footer.ts'
import { insertSegment } from '../../ledger/segment-store.ts'
import { randomHex } from '../../platform/id.ts'
import { type ArchiveDeps, ArchiveRefusedError } from './archive-deps.ts'
import { claimArchive } from './archive-identity.ts'
import { clearOwnDraft } from './clear-drafts.ts'
import { draftKeyOf, noteDraft } from './draft-store.ts'
import type { EncodedRun } from './encode-runs.ts'

/**
 * Writes a segment's file under the name of a draft, reads it back, compares every hash in it with the
 * table's, checks that the storage is the archive, gives the file its final name and adds it to the
 * catalog. False when another archiver was here; then there is no file, as after a failure.
 */
export async function keepSegment(deps: ArchiveDeps, run: EncodedRun): Promise<boolean> {
  const { db } = deps.database
  const { summary, file, lastId } = run
  const { workspaceId } = summary
  const draft = { workspaceId, objectKey: newObjectKey(run) }
  await noteDraft(db, draft, new Date(deps.clock()))
  let isOurs = false
  try {
    const draftKey = draftKeyOf(draft)
    await deps.store.put(draftKey, file)
    await refuseOtherEvents(deps, draftKey, run)
    await claimArchive(deps)
    // Gone when another archiver took us for dead and deleted it.
    if (!(await deps.store.rename(draftKey, draft.objectKey))) return false
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

/** A name is given once, whatever the file holds: who deletes a draft deletes nobody else's file. */
function newObjectKey({ summary, month }: EncodedRun): string {
  const name = `${String(summary.firstSeq).padStart(16, '0')}-${randomHex(8)}`
  return `${summary.workspaceId}/${month}/${name}.parquet`
}

/** Each hash is recomputed from what the storage returns; it must be the one the table has. */
async function refuseOtherEvents(
  { store, readBack }: ArchiveDeps,
  objectKey: string,
  { file, hashes, summary }: EncodedRun,
): Promise<void> {
  const stored = await store.read(objectKey)
  assert(stored !== null && stored.equals(file), 'the storage returns what was put')
  const answer = await readBack.recompute(stored)
  if (answer.ok && hashes.equals(answer.hashes)) return
  const { firstSeq, lastSeq, workspaceId } = summary
  const problem = answer.ok ? 'a hash differs' : answer.problem
  throw new ArchiveRefusedError(
    `the events ${firstSeq} to ${lastSeq} of workspace ${workspaceId} are not what their hashes say (${problem}); run annals verify`,
  )
}
