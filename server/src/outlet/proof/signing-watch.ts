import type { HeadMove } from '../../ledger/append-store.ts'
import type { ChainHead } from '../../ledger/event.ts'
import { readPublishedTree } from '../../ledger/tree/checkpoint-store.ts'
import { includesEvent } from '../../ledger/tree/inclusion.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { type MonotonicClock, monotonicClock } from '../../platform/time/clock.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import { isSignedTree } from './signer-state.ts'
import type { TreeSigner } from './signer.ts'

type WatchOptions = {
  db: Queryable
  signer: Pick<TreeSigner, 'listKeys'>
  logger: Logger
  monotonic?: MonotonicClock
  /** How long a check waits for the database and the archive. */
  checkMsMax?: number
  /** Called with the age of the oldest late event, or 0. */
  onChecked?: (oldestSeconds: number) => void
}

/** A chain in which this node has stored events. */
type Watched = {
  /**
   * Heads to which the node has moved the chain. The first one has waited since `storedAtMs`. Each later one replaces
   * the one that it continues, because it contains that one's hash.
   */
  heads: ChainHead[]
  storedAtMs: number
}

type Due = [WorkspaceId, Watched]

/** Signing takes at most five seconds, or some more while the signer moves to another node. */
const LATE_MS = 20_000
const CHECK_EVERY_MS = 5_000
const CHECK_MS_MAX = 5_000
/** Beyond this number, further chains are not watched. */
const WATCHED_MAX = 10_000
/** While several nodes store events in a chain, each of their turns begins a new head. Beyond this number, some are not checked. */
const HEADS_MAX = 16
const CHECKED_PER_RUN = 1_000
const LOG_EVERY_MS = 60_000

/**
 * Reports events that this node has stored and that are not in the signed tree in time. The signer learns from the
 * database which chains have new events, and which node signs. So anyone who can change the database could stop it
 * silently, or delete or change acknowledged events before they are signed. The watch relies only on what the node
 * itself has stored, and on signatures: an event that can't be checked counts as not signed.
 */
export class SigningWatch implements AsyncDisposable {
  readonly #options: WatchOptions
  readonly #nowMs: MonotonicClock
  /** In the order of `storedAtMs`. */
  readonly #watched = new Map<WorkspaceId, Watched>()
  #isChecking = false
  /** Why the last check could not read a chain's signatures. */
  #failure: unknown = null
  #loggedAtMs = -Infinity
  readonly #loop: Loop

  constructor(options: WatchOptions) {
    this.#options = options
    this.#nowMs = options.monotonic ?? monotonicClock
    const { logger } = options
    this.#loop = new Loop({
      name: 'signing-watch',
      everyMs: CHECK_EVERY_MS,
      logger,
      run: () => this.check(),
    })
  }

  /** Call it when the node has stored events. */
  noteMoved({ workspaceId, from, to }: HeadMove): void {
    const heads = this.#watched.get(workspaceId)?.heads
    if (heads) {
      const isContinued = heads.length > 1 && heads.at(-1)?.hash === from.hash
      if (isContinued || heads.length === HEADS_MAX) heads.pop()
      heads.push(to)
    } else if (this.#watched.size < WATCHED_MAX) {
      this.#watch(workspaceId, [to])
    }
  }

  /** Sends no query if there are no events to check. */
  async check(): Promise<void> {
    const due = this.#listDue()
    let late = due
    try {
      late = await this.#findLate(due)
    } finally {
      // Also if the keys or the checkpoints can't be read, because nothing is signed then either.
      this.#report(late)
    }
  }

  #watch(workspaceId: WorkspaceId, heads: ChainHead[]): void {
    this.#watched.delete(workspaceId)
    this.#watched.set(workspaceId, { heads, storedAtMs: this.#nowMs() })
  }

  #listDue(): Due[] {
    const storedBeforeMs = this.#nowMs() - LATE_MS
    const due = [...this.#watched].filter(([, { storedAtMs }]) => storedAtMs <= storedBeforeMs)
    return due.slice(0, CHECKED_PER_RUN)
  }

  /** Stops watching what is signed. */
  async #findLate(due: Due[]): Promise<Due[]> {
    if (due.length === 0) return []
    // Otherwise, checks that wait for a locked table would use up the connections.
    if (this.#isChecking) return due
    const cut = new AbortController()
    const timeoutMs = this.#options.checkMsMax ?? CHECK_MS_MAX
    const late = () => new Error(`The signatures could not be checked within ${timeoutMs} ms.`)
    try {
      return await withDeadline(this.#checkAll(due, cut.signal), { timeoutMs, late })
    } finally {
      cut.abort()
    }
  }

  async #checkAll(all: readonly Due[], signal: AbortSignal): Promise<Due[]> {
    this.#isChecking = true
    this.#failure = null
    const late: Due[] = []
    try {
      const keys = await this.#options.signer.listKeys()
      const publicKeys = keys.map(({ publicKey }) => Buffer.from(publicKey, 'base64'))
      for (const due of all) {
        if (signal.aborted) break
        const [workspaceId, watched] = due
        const signed = await this.#findSigned(workspaceId, watched.heads, publicKeys)
        const [first] = watched.heads
        // Read again, because the node may have stored more in the meantime.
        watched.heads = watched.heads.filter((head) => !signed.has(head))
        if (watched.heads.length === 0) this.#watched.delete(workspaceId)
        else if (watched.heads[0] === first) late.push(due)
        else this.#watch(workspaceId, watched.heads)
      }
      return late
    } finally {
      this.#isChecking = false
    }
  }

  async #findSigned(
    workspaceId: WorkspaceId,
    heads: readonly ChainHead[],
    publicKeys: readonly Buffer[],
  ): Promise<ReadonlySet<ChainHead>> {
    const { db } = this.#options
    const signed = new Set<ChainHead>()
    try {
      const { checkpoint } = await readPublishedTree(db, workspaceId)
      if (checkpoint === null || !isSignedTree(checkpoint, { workspaceId, publicKeys }))
        return signed
      for (const head of heads.filter(({ seq }) => seq <= checkpoint.size)) {
        if (await includesEvent(db, checkpoint, { workspaceId, ...head })) signed.add(head)
      }
    } catch (error) {
      // Also a row that can't be read, which must not keep the other chains from being checked.
      this.#failure = error
    }
    return signed
  }

  #report(late: readonly Due[]): void {
    const { logger, onChecked } = this.#options
    const nowMs = this.#nowMs()
    const [oldest] = late
    const oldestSeconds = oldest ? Math.round((nowMs - oldest[1].storedAtMs) / 1_000) : 0
    onChecked?.(oldestSeconds)
    if (!oldest || nowMs - this.#loggedAtMs < LOG_EVERY_MS) return
    this.#loggedAtMs = nowMs
    const [workspaceId] = oldest
    logger.error({
      event: 'signer.late',
      workspaceId,
      count: late.length,
      oldestSeconds,
      err: this.#failure ?? undefined,
      action: 'Follow docs/operations.md, section "Events are not signed".',
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
  }
}
