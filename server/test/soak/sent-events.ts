import assert from 'node:assert/strict'

const EVENTS_MAX = 2_000_000
const SENT = 1
const ACKNOWLEDGED = 2
const KEYED = 4

const CATEGORIES = ['auth', 'billing', 'access', 'data', 'admin'] as const
const ACTIONS = ['created', 'updated', 'deleted', 'viewed', 'exported', 'shared', 'denied'] as const
/** Formulas, quotes, separators and multi-byte characters. */
const TEXTS = [
  'plain',
  '=1+1',
  'say "yes", twice',
  'naïve 東京 🎌',
  "it's; -2",
  'two\nlines',
] as const
const LARGE_EVERY = 50
const LARGE_CHARACTERS = 8_000

/**
 * Every event that the soak test sent, by number. The number is in the event's metadata and determines
 * all other fields, so a stored event can be matched to its request without keeping the request.
 */
export class SentEvents {
  #count = 0
  readonly #flags = new Uint8Array(EVENTS_MAX)
  readonly #workspaces = new Uint8Array(EVENTS_MAX)
  readonly #ids: (string | undefined)[] = []
  /** Acknowledged since the last `takeRecent`. */
  #recent: number[] = []

  /** Numbers run from 0 to this. */
  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    return this.#count + 1_000 >= EVENTS_MAX
  }

  add(workspaceIndex: number, { isKeyed }: { isKeyed: boolean }): number {
    assert(this.#count < EVENTS_MAX)
    const n = this.#count
    this.#count += 1
    this.#flags[n] = isKeyed ? SENT | KEYED : SENT
    this.#workspaces[n] = workspaceIndex
    return n
  }

  /** False if the event already has a different id. */
  acknowledge(n: number, id: string): boolean {
    const known = this.#ids[n]
    if (known !== undefined) return known === id
    this.#ids[n] = id
    this.#flags[n] = (this.#flags[n] ?? 0) | ACKNOWLEDGED
    this.#recent.push(n)
    return true
  }

  has(n: unknown, workspaceIndex: number): n is number {
    return (
      typeof n === 'number' &&
      Number.isInteger(n) &&
      n >= 0 &&
      n < this.#count &&
      this.#workspaces[n] === workspaceIndex
    )
  }

  idOf(n: number): string | undefined {
    return this.#ids[n]
  }

  workspaceOf(n: number): number {
    return this.#workspaces[n] ?? -1
  }

  isKeyed(n: number): boolean {
    return ((this.#flags[n] ?? 0) & KEYED) !== 0
  }

  isAcknowledged(n: number): boolean {
    return ((this.#flags[n] ?? 0) & ACKNOWLEDGED) !== 0
  }

  /** A snapshot with one flag per event sent so far: 1 if it is acknowledged. */
  snapshot(): Uint8Array {
    return this.#flags.slice(0, this.#count).map((flags) => (flags & ACKNOWLEDGED ? 1 : 0))
  }

  takeRecent(): number[] {
    const recent = this.#recent
    this.#recent = []
    return recent
  }

  /** The request body, the same each time. */
  bodyOf(n: number): object {
    const isLarge = n % LARGE_EVERY === 0
    return {
      category: categoryOf(n),
      action: `record.${ACTIONS[n % ACTIONS.length]}`,
      actor: { id: `user_${n % 97}`, email: `user_${n % 97}@example.com`, role: 'member' },
      resource: { type: 'record', id: `record_${n % 1_009}` },
      metadata: {
        n,
        text: TEXTS[n % TEXTS.length],
        ...(isLarge && { filler: 'x'.repeat(LARGE_CHARACTERS) }),
      },
      ...(this.isKeyed(n) && { idempotencyKey: `soak-${n}` }),
    }
  }
}

export function categoryOf(n: number): string {
  return CATEGORIES[n % CATEGORIES.length] ?? ''
}
