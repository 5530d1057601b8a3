import { ApiError } from '../../errors.ts'
import type { MonotonicClock } from '../../platform/clock.ts'
import { withDeadline } from '../../platform/deadline.ts'
import { type AddressRanges, compileRanges } from '../../tenancy/allowlist.ts'
import type { StoredKey } from '../../tenancy/key-store.ts'

export type CachedKey = StoredKey & {
  ranges: AddressRanges
  /** The key's text as a caller last proved to know it. It stays as long as the secret is the same. */
  provenText: Buffer | null
}

type Entry = { key: CachedKey | null; readAtMs: number; refresh: Promise<Entry> | null }

/** A younger entry is served as it is. */
const FRESH_MS = 1_000
/** An older one is never served: a revocation is seen by every node within two seconds. */
const STALE_MS_MAX = 1_800
const KEYS_MAX = 10_000
/** A caller learns within a second that the database is gone; the rest is for a busy machine. */
const READ_MS_MAX = 700

/**
 * Keys by kid. Between fresh and stale an entry is served while one read renews it, so a busy key
 * never waits for the database, and no notification has to arrive for a revocation to hold.
 */
export class KeyCache {
  readonly #entries = new Map<string, Entry>()
  readonly #read: (kid: string) => Promise<StoredKey | null>
  readonly #clock: MonotonicClock

  constructor(read: (kid: string) => Promise<StoredKey | null>, clock: MonotonicClock) {
    this.#read = read
    this.#clock = clock
  }

  /** What is there, however old. */
  peek(kid: string): CachedKey | null {
    return this.#entries.get(kid)?.key ?? null
  }

  async find(kid: string): Promise<CachedKey | null> {
    const entry = this.#entries.get(kid)
    const ageMs = entry ? this.#clock() - entry.readAtMs : Number.POSITIVE_INFINITY
    if (entry && ageMs < FRESH_MS) return entry.key
    const refresh = this.#refresh(kid, entry)
    if (entry && ageMs < STALE_MS_MAX) {
      // The entry stays until it is stale; by then the failure is met by the caller who waits.
      refresh.catch(() => {})
      return entry.key
    }
    const fresh = await withDeadline(refresh, {
      timeoutMs: READ_MS_MAX,
      late: () => new ApiError('unavailable'),
    })
    return fresh.key
  }

  #refresh(kid: string, entry: Entry | undefined): Promise<Entry> {
    const running = entry?.refresh
    if (running) return running
    // Placed before the read, so that everyone who asks meanwhile joins it.
    const placed: Entry = entry ?? { key: null, readAtMs: Number.NEGATIVE_INFINITY, refresh: null }
    placed.refresh = this.#load(kid, placed)
    this.#entries.set(kid, placed)
    this.#forgetOldest()
    return placed.refresh
  }

  async #load(kid: string, entry: Entry): Promise<Entry> {
    // The age counts from before the read: a revocation that commits during it is not in it.
    const startedAtMs = this.#clock()
    try {
      const key = await this.#read(kid)
      entry.key = key && {
        ...key,
        ranges: compileRanges(key.allowlist),
        provenText: entry.key?.secretHash.equals(key.secretHash) ? entry.key.provenText : null,
      }
      entry.readAtMs = startedAtMs
      return entry
    } finally {
      entry.refresh = null
    }
  }

  #forgetOldest(): void {
    if (this.#entries.size <= KEYS_MAX) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.#entries.delete(oldest)
  }
}
