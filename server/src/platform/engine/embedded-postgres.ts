import { setTimeout as delay } from 'node:timers/promises'

import {
  type AttachedEngine,
  type Attachment,
  attachToEngine,
  type Engine,
  detachFromEngine,
} from './attach.ts'
import { openDataFolder } from './files.ts'
import { findNativeFolder } from './package.ts'
import type { EngineConnection } from './presence.ts'
import type { EngineSettings } from './settings.ts'
import type { EngineUser } from './user.ts'

export { EngineError } from './engine-error.ts'

export interface EngineOptions {
  /** An absolute path. */
  readonly dataDir: string
  /** If false, a folder without a database is an error. By default, the database is created. */
  readonly mayCreate?: boolean
  /** True for a service, because a data folder can have only one. Commands can use it at the same time. */
  readonly exclusive: boolean
  readonly logger?: EngineLogger
  /** Overrides of our PostgreSQL settings. They apply only if this call starts PostgreSQL. */
  readonly settings?: EngineSettings
  /** Aborted when the caller no longer waits for the start. */
  readonly signal?: AbortSignal | undefined
}

/** The part of a pino logger that is needed here. */
export interface EngineLogger {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
}

const SILENT: EngineLogger = { info: () => {}, warn: () => {} }

/** When started as root, the message also says which user PostgreSQL runs as. */
const READY = {
  caller: 'the embedded engine is ready',
  'folder owner': 'the embedded engine is ready and runs as the owner of the data folder',
  own: 'the embedded engine is ready and runs as a dedicated user',
  nobody:
    'the embedded engine is ready and runs as nobody: other programs that run as nobody can read and change the database',
} as const satisfies Record<EngineUser['kind'], string>

const RETRY_MS_MIN = 50
const RETRY_MS_MAX = 5_000

/** Attaches to the data folder's engine. Creates and starts it if necessary. */
export async function startEngine(options: EngineOptions): Promise<EmbeddedPostgres> {
  const { exclusive, mayCreate = true, logger = SILENT, settings = {}, signal } = options
  const startedAtMs = performance.now()
  const engine = {
    native: findNativeFolder(),
    files: openDataFolder(options.dataDir, { mayCreate }),
    settings,
  }
  const attached = await attachToEngine(engine, { exclusive, mayCreate, signal })
  const durationMs = Math.round(performance.now() - startedAtMs)
  const event = attached.wasRunning ? 'engine.adopted' : 'engine.started'
  const { uid, kind } = attached.user
  const fields = { event, dataDir: engine.files.dataDir, durationMs, uid, user: kind }
  if (kind === 'nobody') logger.warn(fields, READY.nobody)
  else logger.info(fields, READY[kind])
  return new EmbeddedPostgres(engine, attached, { exclusive, logger })
}

/**
 * One process's use of the embedded engine.
 *
 *   attached ──connection ends──▶ lost ──engine runs again──▶ attached     (a service)
 *   attached ──connection ends──▶ lost                                     (a command)
 *   attached | lost ──dispose──▶ left: the last process to leave stops PostgreSQL
 *
 * The engine may outlive the process that started it, because that was killed or because others
 * use the engine. `connection` stays valid throughout. Disposal logs failures and never throws.
 */
class EmbeddedPostgres implements AsyncDisposable {
  readonly connection: EngineConnection
  readonly #engine: Engine
  readonly #exclusive: boolean
  readonly #logger: EngineLogger
  readonly #closing = new AbortController()
  /** Null while lost. */
  #attached: AttachedEngine | null = null
  #recovery: Promise<void> | null = null
  #detaching: Promise<void> | null = null

  constructor(
    engine: Engine,
    attachment: Attachment,
    { exclusive, logger }: { exclusive: boolean; logger: EngineLogger },
  ) {
    this.connection = attachment.connection
    this.#engine = engine
    this.#exclusive = exclusive
    this.#logger = logger
    this.#watch(attachment)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#detaching ??= this.#detach()
    await this.#detaching
  }

  #watch(attached: AttachedEngine): void {
    this.#attached = attached
    void attached.presence.lost.then(() => {
      if (this.#closing.signal.aborted) return
      this.#attached = null
      this.#logger.warn({ event: 'engine.lost', ...this.#fields() }, 'the embedded engine is gone')
      // A command fails when its own queries do. Only a service outlives its engine.
      if (this.#exclusive) this.#recovery = this.#recover()
    })
  }

  async #recover(): Promise<void> {
    let waitMs = RETRY_MS_MIN
    while (!this.#closing.signal.aborted) {
      try {
        // Without `mayCreate`, because an empty ledger must never silently replace an existing one.
        const attached = await attachToEngine(this.#engine, { exclusive: true, mayCreate: false })
        const event = attached.wasRunning ? 'engine.adopted' : 'engine.started'
        this.#logger.info({ event, ...this.#fields() }, 'the embedded engine is back')
        this.#watch(attached)
        return
      } catch (error) {
        this.#logger.warn(
          { event: 'engine.refused', err: error, waitMs, ...this.#fields() },
          "the embedded engine can't be started again yet",
        )
        await delay(waitMs, undefined, { signal: this.#closing.signal }).catch(() => {})
        waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)
      }
    }
  }

  async #detach(): Promise<void> {
    this.#closing.abort()
    await this.#recovery
    try {
      const { isStopped, lockError } = await detachFromEngine(
        this.#engine,
        this.connection,
        this.#attached,
      )
      if (lockError !== null) {
        this.#logger.warn(
          { event: 'engine.unlocked', err: lockError, ...this.#fields() },
          'this process detached from the embedded engine without the lock',
        )
      }
      const event = isStopped ? 'engine.stopped' : 'engine.left'
      this.#logger.info(
        { event, ...this.#fields() },
        'this process detached from the embedded engine',
      )
    } catch (error) {
      // Don't throw: the work of this process is done, and its exit code reports the result of that work.
      this.#logger.warn(
        { event: 'engine.unstopped', err: error, ...this.#fields() },
        'the embedded engine could not be stopped; the next process attaches to it',
      )
    }
  }

  #fields(): Record<string, unknown> {
    return { dataDir: this.#engine.files.dataDir }
  }
}
