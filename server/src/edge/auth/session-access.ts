import { ApiError } from '../../errors.ts'
import type { Clock } from '../../platform/time/clock.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { listViewers, type SeenViewer } from '../../tenancy/sign-in/session-store.ts'
import { AccessWatch } from './access-watch.ts'

/** A valid session, and the customer workspaces that its member can currently see. */
export type SessionGrant = { viewer: SeenViewer; workspaceIds: readonly WorkspaceId[] }

/** Keyed by session token. An open stream alone doesn't prevent the session's idle timeout. */
export type SessionAccess = AccessWatch<SessionGrant>

export function createSessionAccess(db: Queryable, clock: Clock, logger: Logger): SessionAccess {
  return new AccessWatch<SessionGrant>(async (tokens) => {
    const viewers = await listViewers(db, tokens, clock(), { withCustomerWorkspaces: true })
    return new Map(
      viewers.entries().map(([token, { customerWorkspaceIds, ...viewer }]) => {
        const seen = viewer.workspaceIds && new Set(viewer.workspaceIds)
        const workspaceIds = customerWorkspaceIds.filter((id) => seen?.has(id) ?? true)
        return [token, { viewer, workspaceIds }]
      }),
    )
  }, logger)
}

export function refuseSignedOut(grant: SessionGrant | null): SessionGrant {
  if (!grant) throw new ApiError('not_signed_in')
  return grant
}
