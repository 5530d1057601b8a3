import { formatCount } from '../../../parts/text/format.ts'
import { formatLocal, isThisYear, zonedFormat } from '../../../parts/time/time.ts'
import { shorten } from '../../../parts/text/shorten.ts'
import { actorText, type ExplorerEvent, resourceText } from '../explorer-event.ts'
import type { SearchPatch } from '../../../query/explorer-search.ts'
import { arrivedAroundPatch, type Sort } from '../../../query/received.ts'
import { aroundPatch } from '../../../query/time-window.ts'

export const COLUMN_NAMES = [
  'time',
  'received',
  'action',
  'category',
  'actor',
  'resource',
  'project',
  'workspace',
  'trace',
  'seq',
] as const
export type ColumnName = (typeof COLUMN_NAMES)[number]

/** Resolves the ids in an event to names. */
export type Names = { project: (id: string) => string; workspace: (id: string) => string }

type Column = {
  label: string
  /** The width of the grid column. None has a minimum, so that a row never exceeds the page. */
  track: string
  isNumeric?: boolean
  text: (event: ExplorerEvent, names: Names) => string
  /** The filter that "Filter by this" sets. Null if the event lacks the value. */
  filter: (event: ExplorerEvent) => SearchPatch | null
}

const timeOfThisYear = zonedFormat({
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
})

/** A time of another year shows the year instead of the milliseconds. */
function timeText(at: string): string {
  const ms = Date.parse(at)
  return isThisYear(ms) ? timeOfThisYear(ms) : formatLocal(ms, 'clock')
}

export const COLUMNS: Record<ColumnName, Column> = {
  time: {
    label: 'Time',
    track: '164px',
    isNumeric: true,
    text: ({ timestamp }) => timeText(timestamp),
    filter: () => null,
  },
  received: {
    label: 'Received',
    track: '164px',
    isNumeric: true,
    text: ({ receivedAt }) => timeText(receivedAt),
    filter: ({ receivedAt }) => arrivedAroundPatch(Date.parse(receivedAt)),
  },
  action: {
    label: 'Action',
    track: 'minmax(0, 1.4fr)',
    text: ({ action }) => action,
    filter: ({ action }) => ({ action }),
  },
  category: {
    label: 'Category',
    track: 'minmax(0, 0.8fr)',
    text: ({ category }) => category,
    filter: ({ category }) => ({ category }),
  },
  actor: {
    label: 'Actor',
    track: 'minmax(0, 1.2fr)',
    text: actorText,
    filter: actorPatch,
  },
  resource: {
    label: 'Resource',
    track: 'minmax(0, 1.2fr)',
    text: resourceText,
    filter: resourcePatch,
  },
  project: {
    label: 'Project',
    track: 'minmax(0, 0.8fr)',
    text: ({ projectId }, { project }) => (projectId === null ? '' : project(projectId)),
    filter: ({ projectId }) => (projectId === null ? null : { projectId }),
  },
  workspace: {
    label: 'Workspace',
    track: 'minmax(0, 0.9fr)',
    text: ({ workspaceId }, { workspace }) => workspace(workspaceId),
    filter: ({ workspaceId }) => ({ workspaceId }),
  },
  trace: {
    label: 'Trace',
    track: 'minmax(0, 1fr)',
    text: ({ traceId }) => (traceId === null ? '' : shorten(traceId)),
    filter: tracePatch,
  },
  seq: {
    label: 'Seq',
    track: '88px',
    isNumeric: true,
    text: ({ seq }) => formatCount(seq),
    filter: () => null,
  },
}

const DEFAULT: readonly ColumnName[] = ['time', 'action', 'actor', 'resource', 'project', 'seq']
const DEFAULT_OF_ALL: readonly ColumnName[] = [
  'time',
  'action',
  'actor',
  'resource',
  'workspace',
  'seq',
]

/**
 * Returns the columns in table order, whatever their order in the URL. A list that is sorted by the time of receipt
 * also shows it.
 */
export function columnsOf(
  text: string | undefined,
  { isOfAll, sort }: { isOfAll: boolean; sort: Sort },
): readonly ColumnName[] {
  const named = (text ?? '').split(',')
  const chosen = COLUMN_NAMES.filter((name) => named.includes(name))
  const columns = chosen.length > 0 ? chosen : isOfAll ? DEFAULT_OF_ALL : DEFAULT
  if (sort === 'timestamp' || columns.includes('received')) return columns
  return COLUMN_NAMES.filter((name) => name === 'received' || columns.includes(name))
}

/** The most important first. The time of receipt is shown only if the list is sorted by it. */
const PRIORITIES: readonly ColumnName[] = [
  'time',
  'received',
  'action',
  'actor',
  'resource',
  'workspace',
  'category',
  'project',
  'trace',
  'seq',
]
/** The first columns stay however narrow the list is. */
const ALWAYS_SHOWN = 3
/** What a column needs so that most of its texts are whole. */
const WIDTH_PX: Record<ColumnName, number> = {
  time: 164,
  received: 164,
  action: 150,
  category: 100,
  actor: 150,
  resource: 150,
  project: 90,
  workspace: 100,
  trace: 110,
  seq: 88,
}
/** The space between columns and at both ends of a row, as in the style sheet. */
const GAP_PX = 12
const EDGES_PX = 36

/** Drops the least important columns until the others fit. Keeps them all while the width isn't known. */
export function fitColumns(columns: readonly ColumnName[], widthPx: number): readonly ColumnName[] {
  if (widthPx === 0) return columns
  const needs = (names: readonly ColumnName[]) =>
    names.reduce((sum, name) => sum + WIDTH_PX[name] + GAP_PX, EDGES_PX - GAP_PX)
  let fitting = columns
  for (const name of PRIORITIES.slice(ALWAYS_SHOWN).toReversed()) {
    if (needs(fitting) <= widthPx) break
    fitting = fitting.filter((other) => other !== name)
  }
  return fitting
}

/** Filters by the value that the actor column shows: the email, or the id if there is none. */
export function actorPatch({ actor }: ExplorerEvent): SearchPatch | null {
  if (actor?.email !== undefined) return { actorEmail: actor.email }
  return actor?.id === undefined ? null : { actorId: actor.id }
}

export function resourcePatch({ resource }: ExplorerEvent): SearchPatch | null {
  const { type, id } = resource ?? {}
  if (type === undefined && id === undefined) return null
  return { resourceType: type ?? null, resourceId: id ?? null }
}

export function tracePatch({ traceId, timestamp }: ExplorerEvent): SearchPatch | null {
  return traceId === null ? null : { traceId, ...aroundPatch(Date.parse(timestamp)) }
}
