import type { Logger } from '../../platform/logger.ts'
import {
  type ObjectStore,
  stoppable,
  StorageError,
} from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { type MonotonicClock, monotonicClock } from '../../platform/time/clock.ts'
import { findLost, signedText } from './lost-workspace.ts'

/** Small, because each lost workspace costs two reads, and the signer waits for them. */
const LISTED_PER_RUN = 50
const INTERVAL_MS = 24 * 3_600_000
/** The interval while a workspace is lost, so that the metric soon shows what the operator did. */
const LOST_INTERVAL_MS = 3_600_000
const RETRY_MS = 60_000

type LostCheckOptions = {
  db: Queryable
  archive: ObjectStore
  logger: Logger
  monotonic?: MonotonicClock
  /** Called after each complete check. */
  onLostCount: (count: number) => void
}

/**
 * Looks for signed workspaces that are missing from the database, such as after restoring a backup that is older
 * than they are. The signer never sees these, because it starts from the database.
 */
export class LostCheck {
  readonly #options: LostCheckOptions
  readonly #nowMs: MonotonicClock
  #nextAtMs = -Infinity
  #cursor: string | null = null
  /** How many the current check has found so far. */
  #lost = 0
  /** A failure is logged once until a check succeeds. */
  #isFailureLogged = false

  constructor(options: LostCheckOptions) {
    this.#options = options
    this.#nowMs = options.monotonic ?? monotonicClock
  }

  /** Checks one page if a check is due. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#nowMs() < this.#nextAtMs) return
    const { db, archive, logger, onLostCount } = this.#options
    try {
      const page = { cursor: this.#cursor, limit: LISTED_PER_RUN }
      const found = await findLost({ db, archive: stoppable(archive, signal), signal }, page)
      if ('denied' in found) {
        this.#stopCheck(found.denied, INTERVAL_MS)
        return
      }
      for (const lost of found.lost.filter(({ isAccepted }) => !isAccepted)) {
        this.#lost += 1
        const { workspaceId } = lost
        const problem = `${signedText(lost)}, but the workspace is missing from the database`
        const action = 'Follow docs/operations.md, section "A workspace is lost".'
        logger.error({ event: 'signer.workspace-lost', workspaceId, problem, action })
      }
      this.#cursor = found.cursor
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof StorageError)) throw error
      this.#stopCheck(error.message, RETRY_MS)
      return
    }
    if (this.#cursor !== null) return
    onLostCount(this.#lost)
    this.#nextAtMs = this.#nowMs() + (this.#lost > 0 ? LOST_INTERVAL_MS : INTERVAL_MS)
    this.#lost = 0
    this.#isFailureLogged = false
  }

  /** The next check starts from the first page. */
  #stopCheck(problem: string, waitMs: number): void {
    this.#cursor = null
    this.#lost = 0
    this.#nextAtMs = this.#nowMs() + waitMs
    if (this.#isFailureLogged) return
    this.#isFailureLogged = true
    this.#options.logger.warn({ event: 'signer.list-failed', problem })
  }
}
