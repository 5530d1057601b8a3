import type { ColdCache } from '../../ledger/segment/cold-cache.ts'
import type { LiveTail } from '../../outlet/explorer/live-tail/live-tail.ts'
import type { Searches } from '../../outlet/explorer/searches.ts'
import type { ExportDeps } from '../../outlet/export/exporter.ts'
import type { DestinationRules } from '../../outlet/webhook/send/destination.ts'
import type { Clock, MonotonicClock } from '../../platform/time/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Mailer } from '../../platform/mailer.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { SecretBox } from '../../platform/secret/secret-box.ts'
import type { KeyUseRecorder } from '../auth/key-use-recorder.ts'
import type { IdentityProvider } from '../auth/oidc/identity-provider.ts'
import type { SignInCookie } from '../auth/oidc/sign-in-cookie.ts'
import type { SessionAccess } from '../auth/session-access.ts'
import type { SessionGuard } from '../auth/require-session.ts'
import type { DownloadManager } from '../export/download-manager.ts'
import type { DownloadRefusals } from '../export/download-refusals.ts'
import type { RequestSlots } from '../http/request-slots.ts'
import type { LoginGuard } from '../auth/login/login-guard.ts'

/** The dependencies of the dashboard's routes. Each route picks what it needs. */
export type DashboardDeps = {
  cookie: SessionGuard['cookie']
  slots: RequestSlots
  sessionAccess: SessionAccess
  login: LoginGuard
  /** Sends nothing if no mail server is configured. */
  mailer: Mailer
  db: Queryable
  /** For small queries that a caller waits for. */
  dbFast: Queryable
  clock: Clock
  monotonic: MonotonicClock
  logger: Logger
  cursors: CursorCodec
  /** Created for the purpose `webhook`. */
  box: SecretBox
  /** Created for the purpose `second-factor`. */
  factorBox: SecretBox
  /** Null if sign-in with OpenID Connect is not configured. */
  provider: IdentityProvider | null
  signInCookie: SignInCookie
  destinationRules: DestinationRules
  /** Signals that there is a new webhook, or that there may be deliveries to send or to end. */
  wakeDispatcher: () => void
  /** Signals that a verification is pending. */
  wakeVerifier: () => void
  exports: ExportDeps
  /** Whether an archive is configured, to which scheduled exports are written. */
  hasArchive: boolean
  coldCache: ColdCache
  liveTail: LiveTail
  /** The explorer's queries on this node. */
  searches: Searches
  /** Shared with the API. */
  downloads: DownloadManager
  refusals: DownloadRefusals
  /** The maximum size of a download in the dashboard, uncompressed. */
  downloadBytesMax: number
  keyUse: KeyUseRecorder
  hasRateLimits: boolean
  /** The URL at which users reach the service, without a trailing slash. Null: the listening address. */
  publicUrl: string | null
}
