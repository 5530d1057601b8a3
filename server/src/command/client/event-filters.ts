import type { Event, EventFilters, ExportInput } from '../../../../sdk/src/resource/types.ts'
import { OperatorError } from '../../errors.ts'
import { compareAtOnce, MetadataText, TermsMatcher } from '../../ledger/search/metadata-match.ts'
import type { MetadataTerm } from '../../ledger/search/metadata-term.ts'
import {
  type FilterField,
  FILTER_NAMES,
  describeFilterNames,
  METADATA_FILTER_PREFIX,
} from './filter-names.ts'

/** The API accepts several values of these in a list. */
const REPEATABLE: readonly string[] = ['category', 'action', 'hasMetadata']

/** How to read the fields that every command can filter by. */
const FIELDS = {
  category: (event) => event.category,
  action: (event) => event.action,
  actorId: ({ actor }) => actor?.id,
  actorEmail: ({ actor }) => actor?.email,
  actorRole: ({ actor }) => actor?.role,
  resourceType: ({ resource }) => resource?.type,
  resourceId: ({ resource }) => resource?.id,
  projectId: ({ projectId }) => projectId,
  traceId: ({ traceId }) => traceId,
} as const satisfies Record<FilterField, (event: Event) => string | null | undefined>

type TimeRange = { from?: string; to?: string }

/** The query of `GET /v1/events`. */
export function listFilters(given: readonly string[], range: TimeRange): EventFilters {
  const { values, metadata } = parseFilters(given, FILTER_NAMES.list)
  const query = Object.fromEntries(
    [...values].map(([name, texts]) => [
      name,
      REPEATABLE.includes(name) ? texts : onlyOne(name, texts),
    ]),
  )
  return { ...range, ...query, metadata: Object.fromEntries(metadata) }
}

/** The filters of an export job. */
export function exportFilters(
  given: readonly string[],
  range: TimeRange,
): NonNullable<ExportInput['filters']> {
  const { values, metadata } = parseFilters(given, FILTER_NAMES.export)
  const fields = Object.fromEntries(
    [...values].map(([name, texts]) => [
      name,
      name === 'hasMetadata' ? texts : onlyOne(name, texts),
    ]),
  )
  return {
    ...range,
    ...fields,
    ...(metadata.size > 0 && { metadata: Object.fromEntries(metadata) }),
  }
}

/** Compares events as the service does. The feed has no filters, because it has no gaps. */
export function eventMatcher(given: readonly string[]): (event: Event) => boolean {
  const { values, metadata } = parseFilters(given, FILTER_NAMES.tail)
  const terms: MetadataTerm[] = [...metadata].map(([path, texts]) => ({ path, values: texts }))
  const matcher = new TermsMatcher(terms)
  return (event) => {
    for (const [name, texts] of values) {
      const value = isField(name) ? FIELDS[name](event) : null
      if (!texts.some((text) => text === value)) return false
    }
    if (terms.length === 0) return true
    const { metadata } = event
    return (
      metadata !== null &&
      compareAtOnce(matcher.compare(new MetadataText(JSON.stringify(metadata))))
    )
  }
}

type Filters = { values: Map<string, string[]>; metadata: Map<string, string[]> }

function parseFilters(given: readonly string[], names: readonly string[]): Filters {
  const filters: Filters = { values: new Map(), metadata: new Map() }
  for (const text of given) {
    const at = text.indexOf('=')
    const name = text.slice(0, Math.max(at, 0))
    const isMetadata = name.startsWith(METADATA_FILTER_PREFIX) && name !== METADATA_FILTER_PREFIX
    if (at < 0 || !(isMetadata || names.includes(name))) {
      throw new OperatorError(
        `--filter must be NAME=VALUE with one of these names: ${describeFilterNames(names)}. Got "${text}".`,
      )
    }
    const key = isMetadata ? name.slice(METADATA_FILTER_PREFIX.length) : name
    // Trace IDs are stored in lower case.
    const value = name === 'traceId' ? text.slice(at + 1).toLowerCase() : text.slice(at + 1)
    const map = isMetadata ? filters.metadata : filters.values
    map.set(key, [...(map.get(key) ?? []), value])
  }
  return filters
}

function onlyOne(name: string, texts: readonly string[]): string {
  const [text = '', ...others] = texts
  if (others.length === 0) return text
  throw new OperatorError(`--filter ${name}=… can be used only once in this command.`)
}

function isField(name: string): name is FilterField {
  return name in FIELDS
}
