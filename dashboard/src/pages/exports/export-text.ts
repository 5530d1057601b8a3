import type { IconName } from '../../parts/Icon.tsx'
import { shorten } from '../../parts/text/shorten.ts'
import { formatLocal } from '../../parts/time/time.ts'
import { listedValues, metadataTexts, exclusionLabel } from '../../query/filter-bodies.ts'
import { exclusionsOf, FIELD_LABELS } from '../../query/filters.ts'
import { FILTER_FIELDS } from '../../query/filter-fields.ts'
import { readMetadata } from '../../query/metadata.ts'
import { hasReceived, receivedText } from '../../query/received.ts'
import { RANGES } from '../../query/time-window.ts'
import type { Cadence, Export, ExportBody } from './exports.ts'
import type { ExportStatus } from './exports-search.ts'

type StatusLabel = { label: string; icon: IconName; color: string }

const ACCENT = 'var(--mantine-color-anchor)'

export const STATUS_LABELS: Record<ExportStatus, StatusLabel> = {
  PENDING: { label: 'Pending', icon: 'export', color: ACCENT },
  RUNNING: { label: 'Running', icon: 'clock', color: 'var(--warn)' },
  SUCCEEDED: { label: 'Succeeded', icon: 'check', color: 'var(--good)' },
  FAILED: { label: 'Failed', icon: 'alert', color: 'var(--bad)' },
  CANCELED: { label: 'Canceled', icon: 'minus', color: 'var(--text-soft)' },
}

export const SOURCE_LABELS: Record<ExportBody['source'], { label: string; description: string }> = {
  HOT: { label: 'Hot', description: 'Events in the explorer.' },
  ARCHIVED: { label: 'Archived', description: 'Events that have left the explorer.' },
  HOT_AND_ARCHIVED: { label: 'Both', description: 'Hot and archived events, in one file.' },
}

/** For use within a sentence. */
export const SOURCE_EVENTS: Record<ExportBody['source'], string> = {
  HOT: 'hot events',
  ARCHIVED: 'archived events',
  HOT_AND_ARCHIVED: 'hot and archived events',
}

export const FORMAT_DESCRIPTIONS: Record<ExportBody['format'], string> = {
  JSONL: 'One JSON object per line, with everything needed to recompute the hashes.',
  CSV: 'For spreadsheets. Hashes can be compared but not recomputed.',
}

/** Follows the filters in a list. Null if there is nothing to say. */
export const EVIDENCE_TEXTS: Record<Export['evidence'], string | null> = {
  NONE: null,
  COMPLETE: 'proves that nothing is missing',
  MEMBERSHIP: 'can’t prove that nothing is missing',
}

export const EXPORT_RANGES = {
  ...RANGES,
  previousMonth: { label: 'Previous month (UTC)' },
} as const
export type ExportRange = keyof typeof EXPORT_RANGES

export function isExportRange(text: string): text is ExportRange {
  return Object.hasOwn(EXPORT_RANGES, text)
}

export const CADENCES: readonly Cadence[] = ['DAILY', 'WEEKLY', 'MONTHLY']
export const CADENCE_LABELS: Record<Cadence, { label: string; description: string }> = {
  DAILY: { label: 'Daily', description: 'Each day, from midnight to midnight.' },
  WEEKLY: { label: 'Weekly', description: 'Each week, from Monday to Sunday.' },
  MONTHLY: { label: 'Monthly', description: 'Each calendar month.' },
}

type Filters = NonNullable<ExportBody['filters']>

/** The filters without the workspace and the period. Empty if there are none. */
export function filterText(filters: Filters, projectName: (id: string) => string): string {
  const parts = FILTER_FIELDS.flatMap((field) => {
    const values = [filters[field] ?? [], ...listedValues(filters, field)].flat()
    const texts = values.map((value) => shownValue(field, value, projectName))
    return texts.length === 0 ? [] : `${FIELD_LABELS[field]} ${texts.join(' or ')}`
  })
  if (hasReceived(filters)) parts.unshift(`received ${receivedText(filters)}`)
  for (const { field, value } of exclusionsOf(filters)) {
    parts.push(`${exclusionLabel(field)} ${shownValue(field, value, projectName)}`)
  }
  if (filters.actorRole !== undefined) parts.push(`actor role ${filters.actorRole}`)
  for (const { path, value } of metadataTexts(filters).flatMap(
    (text) => readMetadata(text) ?? [],
  )) {
    parts.push(`metadata.${path} ${value ?? 'exists'}`)
  }
  if (filters.text !== undefined) parts.push(`containing “${filters.text}”`)
  return parts.join(', ')
}

export function namesProject(filters: Filters): boolean {
  const isExcluded = exclusionsOf(filters).some(({ field }) => field === 'projectId')
  const isListed = listedValues(filters, 'projectId').length > 0
  return isExcluded || isListed || filters.projectId !== undefined
}

function shownValue(field: string, value: string, projectName: (id: string) => string): string {
  if (field === 'projectId') return projectName(value)
  return field === 'traceId' ? shorten(value) : value
}

export function timeText({ range, from, to }: Filters): string {
  if (range !== undefined) return EXPORT_RANGES[range].label
  const [first, last] = [from, to].map((at) =>
    at === undefined ? null : formatLocal(Date.parse(at), 'clock'),
  )
  if (first && last) return `${first} – ${last}`
  if (first) return `from ${first}`
  return last ? `until ${last}` : 'all time'
}

/** The download limit. The service counts a megabyte as 1,048,576 bytes. */
export function limitText(bytesMax: string): string {
  return `${Math.round(Number(bytesMax) / 1_048_576)} MB`
}
