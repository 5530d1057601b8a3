import { ApiError } from '../../errors.ts'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import { type AddressRanges, compileRanges } from '../../tenancy/allowlist.ts'
import { maskOf, permissionsOf } from '../../tenancy/key/key-permissions.ts'
import type { StoredKey } from '../../tenancy/key/key-store.ts'

export type CachedKey = StoredKey & {
  ranges: AddressRanges
  permissionMask: number
  /** The key's text from the last successful verification. Kept as long as the secret stays the same. */
  provenText: Buffer | null
}

/** A key that was read for one purpose, without the cache. */
export function uncachedKey(stored: StoredKey): CachedKey {
  const ranges = compileRanges(stored.allowlist)
  return { ...stored, ranges, permissionMask: maskOf(permissionsOf(stored)), provenText: null }
}

type Entry = { key: CachedKey | null; readAtMs: number; refresh: Promise<Entry> | null }

/** Younger entries are served without a read. */
const FRESH_MS = 1_000
/** Older entries are never served, so a revocation reaches every node within two seconds. */
const STALE_MS_MAX = 1_800
const KEYS_MAX = 10_000
/** Callers learn within a second that the database is down; the rest is a margin for a busy machine. */
const READ_MS_MAX = 700

/**
 * Caches keys by kid. An entry between fresh and stale is served while a single read refreshes it, so a busy
 * key never waits for the database, and a revocation takes effect without a notification.
 */
export class KeyCache {
  readonly #entries = new Map<string, Entry>()
  /** Of keys that were never found. Apart, so that a flood of invented keys doesn't evict any that exists. */
  readonly #unknown = new Map<string, Entry>()
  readonly #read: (kid: string) => Promise<StoredKey | null>
  readonly #clock: MonotonicClock
  readonly #readMsMax: number

  /** `timeoutFactor` multiplies the timeout. */
  constructor(
    read: (kid: string) => Promise<StoredKey | null>,
    clock: MonotonicClock,
    timeoutFactor = 1,
  ) {
    this.#read = read
    this.#clock = clock
    this.#readMsMax = READ_MS_MAX * timeoutFactor
  }

  /** Returns the cached key, however old. */
  peek(kid: string): CachedKey | null {
    return this.#entries.get(kid)?.key ?? null
  }

  async find(kid: string): Promise<CachedKey | null> {
    const entry = this.#entries.get(kid) ?? this.#unknown.get(kid)
    const ageMs = entry ? this.#clock() - entry.readAtMs : Number.POSITIVE_INFINITY
    if (entry && ageMs < FRESH_MS) return entry.key
    const refresh = this.#refresh(kid, entry)
    if (entry && ageMs < STALE_MS_MAX) {
      // If the refresh fails, the entry is served until it is stale. After that, callers wait and see the
      // error.
      refresh.catch(() => {})
      return entry.key
    }
    const fresh = await withDeadline(refresh, {
      timeoutMs: this.#readMsMax,
      late: () => new ApiError('unavailable'),
    })
    return fresh.key
  }

  #refresh(kid: string, entry: Entry | undefined): Promise<Entry> {
    const running = entry?.refresh
    if (running) return running
    // Add the entry before the read, so that concurrent callers share the read.
    const pending: Entry = entry ?? { key: null, readAtMs: Number.NEGATIVE_INFINITY, refresh: null }
    pending.refresh = this.#load(kid, pending)
    if (!entry) keep(this.#unknown, kid, pending)
    return pending.refresh
  }

  async #load(kid: string, entry: Entry): Promise<Entry> {
    // Measure the age from before the read, because the read can miss a revocation that commits meanwhile.
    const startedAtMs = this.#clock()
    try {
      const key = await this.#read(kid)
      entry.key = key && {
        ...uncachedKey(key),
        provenText: entry.key?.secretHash.equals(key.secretHash) ? entry.key.provenText : null,
      }
      entry.readAtMs = startedAtMs
      if (key && !this.#entries.has(kid)) {
        this.#unknown.delete(kid)
        keep(this.#entries, kid, entry)
      }
      return entry
    } finally {
      entry.refresh = null
    }
  }
}

/** Evicts the oldest entry if there are too many. */
function keep(entries: Map<string, Entry>, kid: string, entry: Entry): void {
  entries.set(kid, entry)
  if (entries.size <= KEYS_MAX) return
  const [oldest] = entries.keys()
  if (oldest !== undefined) entries.delete(oldest)
}
