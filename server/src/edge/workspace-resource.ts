import { ApiError } from '../errors.ts'
import { parseId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { Principal } from '../tenancy/principal.ts'
import { type KeyWorkspace, listKeyWorkspaces } from '../tenancy/workspace-store.ts'

/**
 * The workspace that a path names. Another company's workspace, one that the key can't see, an unknown id and
 * an invalid id all get byte-identical 404s.
 */
export async function getKeyWorkspace(
  db: Queryable,
  principal: Principal,
  named: string,
): Promise<KeyWorkspace> {
  const id = parseId<'workspace'>(named)
  const workspaces = id === null ? [] : await listKeyWorkspaces(db, principal)
  const workspace = workspaces.find((candidate) => candidate.id === id)
  if (!workspace) throw new ApiError('not_found')
  return workspace
}

export function workspaceInfo({ id, name, kind, createdAt }: KeyWorkspace) {
  return { id, name, system: kind === 'SYSTEM', createdAt: createdAt.toISOString() }
}
