import type { SegmentPosition } from '../../ledger/segment/segment-store.ts'
import { assertId, type WorkspaceId } from '../../platform/id.ts'

/**
 * Where a search of the archive continues: in the table, at an event of a workspace, or in the segments, at an
 * event of the segment `from`. Without `from`, it starts with the first segment.
 */
export type ArchivePosition =
  | { kind: 'table'; workspaceId: WorkspaceId; toSeq: number }
  | { kind: 'segments'; from: SegmentPosition | null; toSeq: number }

/** Null if there is nothing to search. */
export function firstPosition(workspaceIds: readonly WorkspaceId[]): ArchivePosition | null {
  const [workspaceId] = workspaceIds.toSorted()
  if (workspaceId === undefined) return null
  return { kind: 'table', workspaceId, toSeq: Number.MAX_SAFE_INTEGER }
}

/** The position as text, for a cursor. */
export function archivePositionText(position: ArchivePosition): string {
  if (position.kind === 'table') return `table/${position.workspaceId}/${position.toSeq}`
  const { from, toSeq } = position
  if (from === null) return 'segments'
  return `segments/${from.workspaceId}/${toSeq}/${from.lastSeq}/${from.maxReceivedAtMs}`
}

/** Reads what `archivePositionText` wrote. Cursors are signed, so the text is ours. */
export function readArchivePosition(text: string): ArchivePosition {
  const [kind, id, toSeq, lastSeq, receivedAtMs] = text.split('/')
  if (id === undefined) return { kind: 'segments', from: null, toSeq: 0 }
  const workspaceId: WorkspaceId = assertId(id)
  if (kind === 'table') return { kind, workspaceId, toSeq: Number(toSeq) }
  const from = { maxReceivedAtMs: Number(receivedAtMs), workspaceId, lastSeq: Number(lastSeq) }
  return { kind: 'segments', from, toSeq: Number(toSeq) }
}
