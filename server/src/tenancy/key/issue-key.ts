import { type CompanyId, type KeyId, newId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { KeyPermission } from './key-permissions.ts'
import { insertKey } from './key-store.ts'
import { createKeyText } from './key-text.ts'

/**
 * Creates a key and returns its text, which is never stored. Call it inside a transaction: the lock that
 * enforces the limit lasts until the transaction ends.
 */
export async function issueKey(
  db: Queryable,
  options: {
    companyId: CompanyId
    /** Null for a company key. */
    workspaceId: WorkspaceId | null
    name: string
    /** Default: everything that the scope allows. */
    permissions?: readonly KeyPermission[] | null
    expiresAt: Date | null
  },
  nowMs: number,
): Promise<{ id: KeyId; text: string }> {
  const { kid, secretHash, text } = createKeyText()
  const id = newId<'key'>(nowMs)
  await insertKey(db, { permissions: null, ...options, id, kid, secretHash }, nowMs)
  return { id, text }
}
