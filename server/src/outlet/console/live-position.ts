import type { WorkspaceId } from '../../platform/id.ts'
import type { Positions } from './live-tail.ts'

/** Where a follower stands, short enough for every event: numbers alone, in the order of the chains. */
export function positionText(positions: Positions): string {
  return [...positions]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, seq]) => seq.toString(36))
    .join('.')
}

/** Null when the text is no place in these chains. */
export function readPosition(text: string, workspaceIds: readonly WorkspaceId[]): Positions | null {
  const seqs = text.split('.').map((part) => (isNumber(part) ? Number.parseInt(part, 36) : -1))
  const ids = workspaceIds.toSorted()
  if (seqs.length !== ids.length || seqs.some((seq) => seq < 0)) return null
  return new Map(ids.map((id, index) => [id, seqs[index] ?? 0]))
}

function isNumber(part: string): boolean {
  return /^[0-9a-z]{1,10}$/.test(part)
}
