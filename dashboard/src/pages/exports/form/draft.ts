import { FILTER_FIELDS, type FilterField } from '../../../query/filter-fields.ts'
import { TRACE_ID } from '../../../query/filters.ts'
import { metadataBody, metadataTexts } from '../../../query/filter-bodies.ts'
import { type ReceivedRange, receivedRangeOf } from '../../../query/received.ts'
import type { ExportRange } from '../export-text.ts'
import type { ExportBody } from '../exports.ts'

export const DRAFT_FIELDS = [...FILTER_FIELDS, 'actorRole', 'text'] as const
export type DraftField = FilterField | 'actorRole' | 'text'
export type FilterLine = { field: DraftField; value: string }
type TimeChoice = 'all' | 'exact' | ExportRange

/** An export or a template while the member fills in the form. */
export type Draft = {
  source: ExportBody['source']
  format: ExportBody['format']
  /** Null for all workspaces that the member who runs it sees. */
  workspaceId: string | null
  time: TimeChoice
  /** The exact times, in the API's format. */
  from: string | null
  to: string | null
  lines: readonly FilterLine[]
  /** A range of times of receipt, taken over from the explorer. */
  received: ReceivedRange
  /** Several values of a field, in the notation of the service. */
  anyOf: readonly string[]
  /** Excluded values, in the same notation. */
  not: readonly string[]
  /** Filters by metadata, in the notation of the explorer's URL. */
  metadata: readonly string[]
  /** Whether to prove that nothing is missing. Ignored unless the format is JSONL. */
  isComplete: boolean
  limit: number | null
  viewId: string | null
}

const TEXT_LENGTH_MAX = 200

export function newDraft(workspaceId: string | null): Draft {
  return {
    source: 'HOT',
    format: 'JSONL',
    workspaceId,
    time: 'all',
    from: null,
    to: null,
    lines: [],
    received: {},
    anyOf: [],
    not: [],
    metadata: [],
    isComplete: false,
    limit: null,
    viewId: null,
  }
}

export function draftOf({ source, format, filters = {}, limit, ...rest }: ExportBody): Draft {
  const { range, from = null, to = null } = filters
  return {
    source,
    format,
    workspaceId: filters.workspaceId ?? null,
    time: range ?? (from === null && to === null ? 'all' : 'exact'),
    from,
    to,
    lines: DRAFT_FIELDS.flatMap((field) => {
      const value = filters[field]
      return value === undefined ? [] : { field, value }
    }),
    received: receivedRangeOf(filters),
    anyOf: filters.anyOf ?? [],
    not: filters.not ?? [],
    metadata: metadataTexts(filters),
    isComplete: rest.evidence === 'COMPLETE',
    limit: limit ?? null,
    viewId: rest.savedExplorerViewId ?? null,
  }
}

/** Skips filter lines without a value. */
export function bodyOf(draft: Draft): ExportBody {
  const { source, format, isComplete, limit, viewId } = draft
  return {
    source,
    format,
    filters: filtersOf(draft),
    ...(isComplete && format === 'JSONL' && { evidence: 'COMPLETE' as const }),
    ...(limit !== null && { limit }),
    ...(viewId !== null && { savedExplorerViewId: viewId }),
  }
}

function filtersOf(draft: Draft): NonNullable<ExportBody['filters']> {
  const { workspaceId, lines, received, anyOf, not, metadata } = draft
  const filled = lines.flatMap(({ field, value }) =>
    value.trim() === '' ? [] : [[field, value.trim()] as const],
  )
  return {
    ...timesOf(draft),
    ...received,
    ...(workspaceId !== null && { workspaceId }),
    ...Object.fromEntries(filled),
    ...(anyOf.length > 0 && { anyOf: [...anyOf] }),
    ...(not.length > 0 && { not: [...not] }),
    ...metadataBody(metadata),
  }
}

function timesOf({ time, from, to }: Draft): { range?: ExportRange; from?: string; to?: string } {
  if (time === 'all') return {}
  if (time !== 'exact') return { range: time }
  return { ...(from !== null && { from }), ...(to !== null && { to }) }
}

/** Archived events require a period: that of the form or of the saved view. */
export function lacksRange({ source, time, viewId }: Draft): boolean {
  return time === 'all' && source !== 'HOT' && viewId === null
}

export const RANGE_MISSING_TEXT = 'Choose a time range. Archived events require one.'

/** A human-readable message that says what is missing. Null if the form is complete. */
export function missingIn(draft: Draft): string | null {
  const { source, time, from, to, lines } = draft
  const isArchived = source !== 'HOT'
  if (lacksRange(draft)) return RANGE_MISSING_TEXT
  if (time === 'exact') {
    if (from === null && to === null) return 'Enter a start or an end time.'
    if (isArchived && (from === null || to === null)) {
      return 'Enter a start and an end time. Archived events require both.'
    }
    if (from !== null && to !== null && Date.parse(from) >= Date.parse(to)) {
      return 'The end must be after the start.'
    }
  }
  const valueOf = (field: DraftField) => lines.find((line) => line.field === field)?.value.trim()
  const traceId = valueOf('traceId')
  if (traceId && !TRACE_ID.test(traceId)) return 'A trace ID has 32 hexadecimal digits.'
  if ((valueOf('text') ?? '').length > TEXT_LENGTH_MAX) {
    return `Search text can have at most ${TEXT_LENGTH_MAX} characters.`
  }
  return null
}
