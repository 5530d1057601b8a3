import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { LiveTail } from '../../outlet/console/live-tail.ts'
import type { Searches } from '../../outlet/console/searches.ts'
import type { ExportDeps } from '../../outlet/export/exporter.ts'
import type { DestinationRules } from '../../outlet/webhook/destination.ts'
import type { Clock, MonotonicClock } from '../../platform/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Mailer } from '../../platform/mailer.ts'
import type { Queryable } from '../../platform/pg.ts'
import type { SecretBox } from '../../platform/secret-box.ts'
import type { Gate } from '../auth/gate.ts'
import type { KeyUseRecorder } from '../auth/key-use-recorder.ts'
import type { SessionAccess } from '../auth/session-access.ts'
import type { SessionGuard } from '../auth/require-session.ts'
import type { DownloadManager } from '../download-manager.ts'
import type { RequestSlots } from '../request-slots.ts'
import type { LoginGuard } from './session/login-guard.ts'

/** What the dashboard's routes are given. Each takes what it needs of it. */
export type DashboardDeps = {
  signedIn: SessionGuard['signedIn']
  anybody: SessionGuard['anybody']
  cookie: SessionGuard['cookie']
  slots: RequestSlots
  sessionAccess: SessionAccess
  login: LoginGuard
  /** It sends nothing where no mail server is configured. */
  mailer: Mailer
  db: Queryable
  /** For small questions a caller waits on. */
  dbFast: Queryable
  clock: Clock
  monotonic: MonotonicClock
  logger: Logger
  cursors: CursorCodec
  /** Of the purpose `webhook`. */
  box: SecretBox
  destinationRules: DestinationRules
  /** A hint that there may be something to send, or to end. */
  wakeDispatcher: () => void
  /** A hint that somebody waits for a run through a chain. */
  wakeVerifier: () => void
  exports: ExportDeps
  liveTail: LiveTail
  /** The explorer's reads on this node. */
  searches: Searches
  /** The same as those of the API. */
  downloads: DownloadManager
  /** The most that a download in the dashboard has, uncompressed. */
  downloadBytesMax: number
  keyUse: KeyUseRecorder
  /** What each operation of the API asks of a key, by `operationId`, as its route declares it. */
  operationGates: ReadonlyMap<string, Gate>
  hasRateLimits: boolean
  /** The address that people reach the service at, without a slash at its end; null: the listening one. */
  publicUrl: string | null
}

export type DashboardRoute = (deps: DashboardDeps) => FastifyPluginAsyncTypebox
