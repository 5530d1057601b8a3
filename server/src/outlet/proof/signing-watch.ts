import { listPublishedOf } from '../../ledger/tree/checkpoint-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { type MonotonicClock, monotonicClock } from '../../platform/time/clock.ts'
import { isSignedTree } from './signer-state.ts'
import type { TreeSigner } from './signer.ts'

type WatchOptions = {
  db: Queryable
  signer: Pick<TreeSigner, 'listKeys'>
  logger: Logger
  monotonic?: MonotonicClock
  /** Called with the age of the oldest late event, or 0. */
  onChecked?: (oldestSeconds: number) => void
}

/** A chain in which this node has stored events. */
type Watched = {
  /** The event whose signature the node waits for, and when the node stored it. */
  seq: number
  storedAtMs: number
  /** The last event that the node has stored. */
  lastSeq: number
}

/** Signing takes at most five seconds, or some more while the signer moves to another node. */
const LATE_MS = 20_000
const CHECK_EVERY_MS = 5_000
/** Beyond this number, further chains are not watched. */
const WATCHED_MAX = 10_000
const CHECKED_PER_RUN = 500
const LOG_EVERY_MS = 60_000

/**
 * Reports events that stay unsigned. The signer learns from the database which chains have new events, and which
 * node signs. So anyone who can change the database could stop it silently, and change acknowledged events before
 * they are signed. The watch relies only on what the node itself has stored, and on signatures.
 */
export class SigningWatch implements AsyncDisposable {
  readonly #options: WatchOptions
  readonly #nowMs: MonotonicClock
  /** In the order of `storedAtMs`. */
  readonly #watched = new Map<WorkspaceId, Watched>()
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

  /** Call it when the node has stored events in these workspaces. */
  noteStored(
    workspaceIds: Iterable<WorkspaceId>,
    seqOf: (workspaceId: WorkspaceId) => number | undefined,
  ): void {
    for (const workspaceId of workspaceIds) {
      const seq = seqOf(workspaceId)
      if (seq === undefined) continue
      const known = this.#watched.get(workspaceId)
      if (known) known.lastSeq = seq
      else if (this.#watched.size < WATCHED_MAX) this.#watch(workspaceId, seq)
    }
  }

  /** Sends no query if there are no events to check. */
  async check(): Promise<void> {
    try {
      await this.#forgetSigned()
    } finally {
      // Also if the keys or the checkpoints can't be read, because nothing is signed then either.
      this.#report(this.#listLate())
    }
  }

  async #forgetSigned(): Promise<void> {
    const due = this.#listLate().slice(0, CHECKED_PER_RUN)
    if (due.length === 0) return
    const sizes = await this.#readSignedSizes(due.map(([workspaceId]) => workspaceId))
    for (const [workspaceId, { seq, lastSeq }] of due) {
      const size = sizes.get(workspaceId) ?? 0
      if (size < seq) continue
      this.#watched.delete(workspaceId)
      if (size < lastSeq) this.#watch(workspaceId, lastSeq)
    }
  }

  #watch(workspaceId: WorkspaceId, seq: number): void {
    this.#watched.set(workspaceId, { seq, lastSeq: seq, storedAtMs: this.#nowMs() })
  }

  #listLate(): [WorkspaceId, Watched][] {
    const storedBeforeMs = this.#nowMs() - LATE_MS
    return [...this.#watched].filter(([, { storedAtMs }]) => storedAtMs <= storedBeforeMs)
  }

  /** Ignores checkpoints without a valid signature, because anyone who can change the database can write some. */
  async #readSignedSizes(workspaceIds: WorkspaceId[]): Promise<Map<WorkspaceId, number>> {
    const { db, signer } = this.#options
    const keys = await signer.listKeys()
    const publicKeys = keys.map(({ publicKey }) => Buffer.from(publicKey, 'base64'))
    const published = await listPublishedOf(db, workspaceIds)
    const signed = published.filter(({ workspaceId, ...checkpoint }) =>
      isSignedTree(checkpoint, { workspaceId, publicKeys }),
    )
    return new Map(signed.map(({ workspaceId, size }) => [workspaceId, size]))
  }

  #report(late: readonly [WorkspaceId, Watched][]): void {
    const { logger, onChecked } = this.#options
    const nowMs = this.#nowMs()
    const [oldest] = late
    const oldestSeconds = oldest ? Math.round((nowMs - oldest[1].storedAtMs) / 1_000) : 0
    onChecked?.(oldestSeconds)
    if (!oldest || nowMs - this.#loggedAtMs < LOG_EVERY_MS) return
    this.#loggedAtMs = nowMs
    const [workspaceId] = oldest
    const action = 'Follow docs/operations.md, section "Events are not signed".'
    logger.error({ event: 'signer.late', workspaceId, count: late.length, oldestSeconds, action })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
  }
}
