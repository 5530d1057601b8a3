import type { DestinationRules } from '../../outlet/webhook/send/destination.ts'
import type { Clock } from '../../platform/time/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { SecretBox } from '../../platform/secret/secret-box.ts'

export type WebhookDeps = {
  db: Queryable
  cursors: CursorCodec
  clock: Clock
  /** Created for the purpose `webhook`. */
  box: SecretBox
  destinationRules: DestinationRules
  /** Signals that there is a new webhook, or that there may be deliveries to send or to end. */
  wakeDispatcher: () => void
}
