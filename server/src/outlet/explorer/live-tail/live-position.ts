import type { WorkspaceId } from '../../../platform/id.ts'
import type { Positions } from './live-tail.ts'

/** A follower's position, short enough to send with every event: only seqs, ordered by workspace id. */
export function positionText(positions: Positions): string {
  return sortedSeqs(positions)
    .map(([, seq]) => seq.toString(36))
    .join('.')
}

/**
 * Returns a function that computes a follower's position after each event of one chain: `positionText` with
 * that chain at `seq`. The rest of the text is built only once per read.
 */
export function positionTexts(positions: Positions, chain: WorkspaceId): (seq: number) => string {
  const seqs = sortedSeqs(positions)
  const index = seqs.findIndex(([id]) => id === chain)
  const before = seqs.slice(0, index).map(([, seq]) => `${seq.toString(36)}.`)
  const after = seqs.slice(index + 1).map(([, seq]) => `.${seq.toString(36)}`)
  const [start, end] = [before.join(''), after.join('')]
  return (seq) => `${start}${seq.toString(36)}${end}`
}

function sortedSeqs(positions: Positions): [WorkspaceId, number][] {
  return [...positions].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** Returns null if the text is not a position in these chains. */
export function readPosition(text: string, workspaceIds: readonly WorkspaceId[]): Positions | null {
  const seqs = text.split('.').map((part) => (isNumber(part) ? Number.parseInt(part, 36) : -1))
  const ids = workspaceIds.toSorted()
  if (seqs.length !== ids.length || seqs.some((seq) => seq < 0)) return null
  return new Map(ids.map((id, index) => [id, seqs[index] ?? 0]))
}

function isNumber(part: string): boolean {
  return /^[0-9a-z]{1,10}$/.test(part)
}
