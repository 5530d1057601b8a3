import type { Clock, MonotonicClock } from '../../platform/time/clock.ts'
import type { KeyId } from '../../platform/id.ts'
import type { Logger } from '../../platform/logger.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { addKeyUses, type KeyUse } from '../../tenancy/key/key-store.ts'

/** The uses of a key on this node since they were last written. */
type UseRecord = KeyUse & { notedAtMs: number; writtenAtMs: number }

const INTERVAL_MS = 1_000
/** The minimum time between two writes of a key's row. */
const WRITE_EVERY_MS = 60_000
const KEYS_MAX = 10_000
const KEYS_PER_WRITE_MAX = 1_000

/**
 * Collects when keys were last used and writes it in batches, never while a request waits. A crash loses at
 * most about a minute of "last used", which is informational only.
 */
export class KeyUseRecorder implements AsyncDisposable {
  readonly #notes = new Map<KeyId, UseRecord>()
  readonly #db: Queryable
  readonly #clock: Clock
  readonly #monotonic: MonotonicClock
  readonly #logger: Logger
  readonly #loop: Loop

  constructor({
    db,
    clock,
    monotonic,
    logger,
  }: {
    db: Queryable
    clock: Clock
    monotonic: MonotonicClock
    logger: Logger
  }) {
    this.#db = db
    this.#clock = clock
    this.#monotonic = monotonic
    this.#logger = logger
    this.#loop = new Loop({
      name: 'key-use',
      everyMs: INTERVAL_MS,
      logger,
      run: () => this.#write(this.#monotonic() - WRITE_EVERY_MS),
    })
  }

  note(keyId: KeyId, use: { ip: string; endpoint: string; hasFailed: boolean }): void {
    const note = this.#notes.get(keyId) ?? this.#addNote(keyId)
    if (!note) return
    note.usedAt = new Date(this.#clock())
    note.notedAtMs = this.#monotonic()
    note.usedIp = use.ip
    note.usedEndpoint = use.endpoint
    note.calls += 1
    if (use.hasFailed) note.failures += 1
  }

  #addNote(keyId: KeyId): UseRecord | null {
    if (this.#notes.size >= KEYS_MAX) return null
    const note: UseRecord = {
      usedAt: new Date(0),
      usedIp: '',
      usedEndpoint: '',
      calls: 0,
      failures: 0,
      notedAtMs: Number.NEGATIVE_INFINITY,
      writtenAtMs: Number.NEGATIVE_INFINITY,
    }
    this.#notes.set(keyId, note)
    return note
  }

  /** More recent than the table, if this node has seen the key. */
  peek(keyId: KeyId): KeyUse | null {
    return this.#notes.get(keyId) ?? null
  }

  /**
   * Writes the notes that were last written before the given time. Notes stay for `peek`, with zero counts.
   */
  async #write(writtenBeforeMs: number): Promise<void> {
    const due = [...this.#notes]
      .filter(([, note]) => note.writtenAtMs <= writtenBeforeMs && note.calls > 0)
      .slice(0, KEYS_PER_WRITE_MAX)
      .map(([keyId, note]) => ({ keyId, ...note }))
    if (due.length > 0) {
      await addKeyUses(this.#db, due)
      for (const { keyId, calls, failures } of due) this.#settle(keyId, calls, failures)
    }
    this.#evictIdle()
  }

  /** Uses that were noted during the write stay due. */
  #settle(keyId: KeyId, calls: number, failures: number): void {
    const note = this.#notes.get(keyId)
    if (!note) return
    note.calls -= calls
    note.failures -= failures
    note.writtenAtMs = this.#monotonic()
  }

  #evictIdle(): void {
    const idleBeforeMs = this.#monotonic() - 2 * WRITE_EVERY_MS
    for (const [keyId, note] of this.#notes) {
      if (note.calls === 0 && note.notedAtMs < idleBeforeMs) this.#notes.delete(keyId)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
    try {
      await this.#write(Number.POSITIVE_INFINITY)
    } catch (error) {
      // The service must be able to stop even if its database is down.
      this.#logger.warn({ event: 'key-use.lost', err: error })
    }
  }
}
