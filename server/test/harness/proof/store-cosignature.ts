import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readPublishedTree } from '../../../src/ledger/tree/checkpoint-store.ts'
import { writeCosignature } from '../../../src/ledger/tree/cosignature-store.ts'
import { signingKeyOf } from '../../../src/outlet/proof/signing-key.ts'
import type { WorkspaceId } from '../../../src/platform/id.ts'
import type { Queryable } from '../../../src/platform/pg/database.ts'
import { Secret } from '../../../src/platform/secret/secret.ts'
import {
  COSIGNATURE,
  cosign,
  noteKeyText,
  parseCheckpoint,
} from '../../../src/platform/tlog/signed-note.ts'

/** Stores a valid cosignature of the newest checkpoint, as if a witness had returned it. */
export async function storeCosignature(
  db: Queryable,
  workspaceId: WorkspaceId,
  name: string,
): Promise<void> {
  const { checkpoint } = await readPublishedTree(db, workspaceId)
  const parsed = checkpoint && parseCheckpoint(checkpoint.note)
  assert(checkpoint && parsed)
  const key = signingKeyOf(new Secret(randomBytes(32)))
  const witness = noteKeyText({ name, type: COSIGNATURE, publicKey: key.publicKey })
  const line = cosign(parsed, { name, ...key }, Date.now())
  await writeCosignature(db, {
    workspaceId,
    witness,
    size: checkpoint.size,
    root: checkpoint.root,
    line,
  })
}
