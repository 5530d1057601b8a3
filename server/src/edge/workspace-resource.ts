import { ApiError } from '../errors.ts'
import { parseId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { Principal } from '../tenancy/principal.ts'
import { findKeyWorkspace, type KeyWorkspace } from '../tenancy/workspace/workspace-store.ts'
import { requireAudit } from './auth/gate.ts'

/** The workspace that a request names, to use what it contains. See `getVisibleWorkspace`. */
export async function getKeyWorkspace(
  db: Queryable,
  principal: Principal,
  named: string,
): Promise<KeyWorkspace> {
  const workspace = await getVisibleWorkspace(db, principal, named)
  requireAudit(principal, workspace.id)
  return workspace
}

/**
 * The workspace that a request names, for its name and its projects. Another company's workspace, one that
 * the key can't see, an unknown id and an invalid id all get byte-identical 404s.
 */
export async function getVisibleWorkspace(
  db: Queryable,
  principal: Principal,
  named: string,
): Promise<KeyWorkspace> {
  const id = parseId<'workspace'>(named)
  const workspace = id && (await findKeyWorkspace(db, principal, id))
  if (!workspace) throw new ApiError('not_found')
  return workspace
}

export function workspaceInfo({ id, name, kind, createdAt }: KeyWorkspace) {
  return { id, name, system: kind === 'SYSTEM', createdAt: createdAt.toISOString() }
}
