import { ApiError } from '../../errors.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Principal } from '../../tenancy/principal.ts'

/** The workspace of a workspace key. The gate has already refused other keys. */
export function workspaceOf(principal: Principal): WorkspaceId {
  if (principal.scope !== 'WORKSPACE') throw new ApiError('insufficient_scope')
  return principal.workspaceId
}
