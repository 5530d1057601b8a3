import type { CompanyId, ProjectId, WorkspaceId } from '../../platform/id.ts'
import type { WebhookId } from './delivery.ts'

export const WEBHOOK_STATUSES = ['ENABLED', 'DISABLED'] as const
type WebhookStatus = (typeof WEBHOOK_STATUSES)[number]

export const WEBHOOK_EVENTS = ['AUDIT_EVENT_CREATED'] as const
export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number]

/** A webhook as shown to its owner. */
export type Webhook = {
  id: WebhookId
  companyId: CompanyId
  workspaceId: WorkspaceId
  /** Null means the whole workspace. */
  projectId: ProjectId | null
  url: string
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

/** Where a webhook sends, and what signs. */
export type Target = { url: string; secrets: SealedSecrets }

/** Encrypted. From `nextAt` on, `next` is the only one. */
export type SealedSecrets = { current: Buffer; next: Buffer | null; nextAt: Date | null }
