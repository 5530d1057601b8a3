import { ApiError } from '../../errors.ts'
import type { DestinationRules } from '../../outlet/webhook/destination.ts'
import type { Clock } from '../../platform/time/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import { parseId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { SecretBox } from '../../platform/secret/secret-box.ts'
import type { Principal } from '../../tenancy/principal.ts'
import { hasWorkspace } from '../../tenancy/workspace-store.ts'

export type WebhookDeps = {
  db: Queryable
  cursors: CursorCodec
  clock: Clock
  /** Created for the purpose `webhook`. */
  box: SecretBox
  destinationRules: DestinationRules
  /** Signals that there may be deliveries to send or to end. */
  wakeDispatcher: () => void
}

/** Another company's id, an unknown id and an invalid id all get byte-identical 404s. */
export async function getWorkspace(
  { db }: Pick<WebhookDeps, 'db'>,
  { companyId }: Principal,
  id: string,
): Promise<WorkspaceId> {
  const workspaceId = parseId<'workspace'>(id)
  if (workspaceId && (await hasWorkspace(db, { companyId, workspaceId }))) return workspaceId
  throw new ApiError('not_found')
}
