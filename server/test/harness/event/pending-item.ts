import type { PendingEvent } from '../../../src/ledger/event.ts'
import type { PendingItem } from '../../../src/intake/pending-item.ts'

/** An event as the writer gets it, without optional fields. `name` is its category and its action. */
export function pendingItem(
  workspace: Pick<PendingEvent, 'companyId' | 'workspaceId'>,
  {
    name = null,
    metadata = null,
    key = null,
  }: { name?: string | null; metadata?: string | null; key?: PendingItem['key'] } = {},
): PendingItem {
  const nowMs = Date.now()
  return {
    event: {
      ...workspace,
      projectId: null,
      timestampMs: nowMs,
      receivedAtMs: nowMs,
      category: name ?? 'c',
      action: name ?? 'a',
      traceId: null,
      actor: null,
      metadata,
      resource: null,
    },
    facets: { actorId: null, actorEmail: null, resourceType: null, resourceId: null },
    key,
  }
}
