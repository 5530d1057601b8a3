import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { AcceptDeps } from '../../intake/accept-event.ts'
import type { ExportDeps } from '../../outlet/export/exporter.ts'
import type { DestinationRules } from '../../outlet/webhook/destination.ts'
import type { Clock } from '../../platform/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg.ts'
import type { SecretBox } from '../../platform/secret-box.ts'
import type { SessionGuard } from '../auth/require-session.ts'

/** What the dashboard's routes are given. Each takes what it needs of it. */
export type DashboardDeps = {
  signedIn: SessionGuard['signedIn']
  anybody: SessionGuard['anybody']
  cookie: SessionGuard['cookie']
  db: Queryable
  /** For small questions a caller waits on. */
  hasty: Queryable
  clock: Clock
  logger: Logger
  cursors: CursorCodec
  hasProject: AcceptDeps['hasProject']
  /** Of the purpose `webhook`. */
  box: SecretBox
  destinationRules: DestinationRules
  /** A hint that there may be something to send, or to end. */
  wakeDispatcher: () => void
  /** A hint that somebody waits for a run through a chain. */
  wakeVerifier: () => void
  exports: ExportDeps
  hasRateLimits: boolean
  /** The address that people reach the service at, without a slash at its end; null: the listening one. */
  publicUrl: string | null
}

export type DashboardRoute = (deps: DashboardDeps) => FastifyPluginAsyncTypebox
