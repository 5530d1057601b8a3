import type { CompanyId, ProjectId, WorkspaceId } from '../../platform/id.ts'
import type { WebhookId } from './delivery/delivery.ts'

export const WEBHOOK_STATUSES = ['ENABLED', 'DISABLED'] as const
type WebhookStatus = (typeof WEBHOOK_STATUSES)[number]

export const WEBHOOK_EVENTS = ['AUDIT_EVENT_CREATED'] as const
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number]

/**
 * Selects events by their fields. An event matches if each given field matches one of its patterns. A pattern
 * is the exact text, or the beginning of the text and `*`.
 */
export type WebhookFilter = Partial<
  Record<'categories' | 'actions' | 'actorIds' | 'resourceTypes', string[]>
>

/** Which events of the workspace a webhook sends. Null for all. */
export type Selection = { projectId: ProjectId | null; filter: WebhookFilter | null }

/** A webhook as shown to its owner. */
export type Webhook = {
  id: WebhookId
  companyId: CompanyId
  workspaceId: WorkspaceId
  /** Null means the whole workspace. */
  projectId: ProjectId | null
  filter: WebhookFilter | null
  /** Events that the project or the filter left out. */
  filteredCount: number
  name: string | null
  url: string
  /** The names of its extra headers. The values are secret. */
  headerNames: string[]
  status: WebhookStatus
  disabledReason: string | null
  events: WebhookEvent[]
  secretLabel: string | null
  /** During a rotation's overlap, when the new secret becomes the only one. */
  nextSecretAt: Date | null
  lastSuccessAt: Date | null
  lastFailureAt: Date | null
  /** Failed attempts since the last success. */
  failureCount: number
  createdAt: Date
  updatedAt: Date
}

/** Where a webhook sends, what signs, and its extra headers, encrypted, or null if it has none. */
export type Target = { url: string; secrets: SealedSecrets; headers: Buffer | null }

/** Encrypted. From `nextAt` on, `next` is the only one. */
export type SealedSecrets = { current: Buffer; next: Buffer | null; nextAt: Date | null }
