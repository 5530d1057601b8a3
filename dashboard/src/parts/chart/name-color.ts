import { parseJson } from '../../../../sdk/src/client/parse-json.ts'

export type Scheme = 'light' | 'dark'

/**
 * Eight hues, then a second shade of each. None is a status color (green, yellow, red). Each has a
 * contrast of at least 3:1 with the page.
 */
export const NAME_COLORS: Record<Scheme, readonly string[]> = {
  light: [
    '#4a74d9',
    '#1f8f8a',
    '#b67d14',
    '#8a63c9',
    '#c9568a',
    '#7b8a2c',
    '#3390c8',
    '#a5724e',
    '#24418f',
    '#0f5a57',
    '#73500a',
    '#52308c',
    '#861f56',
    '#4b5614',
    '#15577f',
    '#683f24',
  ],
  dark: [
    '#6d93f0',
    '#4cbcb5',
    '#e0b050',
    '#a887e0',
    '#de83a9',
    '#a9b85c',
    '#7cc0ea',
    '#c4936d',
    '#4468cc',
    '#2b807b',
    '#96701e',
    '#7d57c4',
    '#b04a7b',
    '#707f2d',
    '#377fae',
    '#8f6443',
  ],
}
/** For all names without a color of their own. */
export const OTHERS_COLOR: Record<Scheme, string> = { light: '#7f8795', dark: '#6b7280' }

const HUES = 8
const SLOTS = 2 * HUES
/** The names that the browser remembers. The oldest are forgotten first. */
const NAMES_MAX = 500
const KEY = 'annals.name-colors'

/** Positions in the palette by the hash of the name, so that no name is stored. */
type Slots = ReadonlyMap<string, number>

let slots: Slots = new Map()

/** The color of a name, the same in every chart. Null stands for all other names. */
export function colorOf(scheme: Scheme, name: string | null): string {
  if (name === null) return OTHERS_COLOR[scheme]
  const hash = hashOf(name)
  return NAME_COLORS[scheme][slots.get(keyOf(hash)) ?? hash % HUES] ?? OTHERS_COLOR[scheme]
}

/** Call this with the names of a chart before it is drawn. */
export function rememberColors(names: readonly string[]): void {
  if (names.every((name) => slots.has(keyOf(hashOf(name))))) return
  // Another tab may have remembered more.
  const known = readStored() ?? slots
  slots = assignSlots(known, names)
  if (names.some((name) => !known.has(keyOf(hashOf(name))))) store(slots)
}

/**
 * Gives each new name the color that its hash selects, or the next one if another name has it. Known
 * names keep theirs.
 */
export function assignSlots(known: Slots, names: readonly string[]): Slots {
  const all = new Map(known)
  // Sorted, so that the result doesn't depend on the counts.
  const hashes = [...names].toSorted().map(hashOf)
  const uses = Array.from({ length: SLOTS }, () => 0)
  const use = (slot: number, weight: number) => (uses[slot] = (uses[slot] ?? 0) + weight)
  for (const slot of all.values()) use(slot, 1)
  // A color that the chart already has is the last choice.
  for (const hash of hashes) use(all.get(keyOf(hash)) ?? -1, NAMES_MAX)
  for (const hash of hashes) {
    if (all.has(keyOf(hash))) continue
    const slot = slotsFrom(hash).reduce((best, next) =>
      (uses[next] ?? 0) < (uses[best] ?? 0) ? next : best,
    )
    all.set(keyOf(hash), slot)
    use(slot, NAMES_MAX)
  }
  return new Map([...all].slice(-NAMES_MAX))
}

/** All slots, starting with the one that the hash selects. Other hues come before second shades. */
function slotsFrom(hash: number): number[] {
  return Array.from(
    { length: SLOTS },
    (_, index) => Math.floor(index / HUES) * HUES + ((hash + index) % HUES),
  )
}

/** FNV-1a. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < name.length; index += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}

function keyOf(hash: number): string {
  return hash.toString(36)
}

function readStored(): Slots | null {
  try {
    const stored: unknown = parseJson(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(stored) ? new Map(stored.filter(isEntry).slice(-NAMES_MAX)) : null
  } catch {
    return null // Storage is blocked, or it contains something else.
  }
}

function isEntry(entry: unknown): entry is [string, number] {
  if (!Array.isArray(entry)) return false
  const [key, slot]: unknown[] = entry
  return typeof key === 'string' && typeof slot === 'number' && slot in NAME_COLORS.light
}

function store(entries: Slots): void {
  try {
    localStorage.setItem(KEY, JSON.stringify([...entries]))
  } catch {
    // Storage is blocked or full. The colors stay until the page is closed.
  }
}
