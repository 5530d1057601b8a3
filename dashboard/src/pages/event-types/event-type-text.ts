import { formatCount } from '../../parts/text/format.ts'
import type { MetadataKey, ShapeChange } from './event-types.ts'

/** For example `card.brand`. */
export function pathText(path: readonly string[]): string {
  return path.join('.')
}

/** What changed, without the key. */
export function changeText(
  { kind, path, type }: ShapeChange,
  keys: readonly MetadataKey[],
): string {
  if (kind === 'KEY_ADDED') return `is new (${type})`
  const key = keys.find((candidate) => pathText(candidate.path) === pathText(path))
  const before = key?.types.slice(0, key.types.indexOf(type)).join(' or ')
  return before ? `was ${before}, now also ${type}` : `now also ${type}`
}

/** How many of the events have a key. */
export function shareText(count: number, total: number): string {
  if (count === total) return 'All events'
  const percent = (count / total) * 100
  if (percent < 1) return `${formatCount(count)} of ${formatCount(total)}`
  return `${Math.min(99, Math.round(percent))}% of events`
}
