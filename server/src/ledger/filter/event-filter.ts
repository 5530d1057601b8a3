import type { ProjectId } from '../../platform/id.ts'
import type { EventFacets, SealedEvent } from '../event.ts'
import { type Exclusion, type FieldValue, valuesByField } from './exclusion.ts'
import { facetsOf, readFields } from './facets.ts'
import { foldCase } from '../../platform/fold-case.ts'
import {
  type Comparison,
  compareAll,
  MetadataText,
  TermsMatcher,
  ValueMatcher,
} from '../search/metadata-match.ts'
import type { MetadataTerm } from '../search/metadata-term.ts'

/**
 * Selects events. The API, exports, the dashboard and saved views share this type, so that the same filter
 * always selects the same events. Null means that the field is not filtered.
 */
export type EventFilter = EventFacets & {
  /** Inclusive, by the event's own timestamp. */
  fromMs: number | null
  /** Exclusive. */
  toMs: number | null
  /** Inclusive, by the time of receipt. */
  receivedFromMs: number | null
  /** Exclusive. */
  receivedToMs: number | null
  category: string | null
  action: string | null
  projectId: ProjectId | null
  /** 32 lowercase hex digits. */
  traceId: string | null
  actorRole: string | null
  /** All of them must match. Ordered by `orderTerms`. */
  metadata: readonly MetadataTerm[] | null
  /**
   * Matches if the category, action, actor id, actor email, resource type or resource id contains this
   * text, or if it is a whole value in the metadata. The letters A to Z match either case; every other
   * character matches only itself.
   */
  text: string | null
  /**
   * Where to look for the text. A search can find the events of `fields` and of `metadata`, which excludes
   * those of `fields`, in different ways. Together they are those of `all`, which every caller asks for.
   */
  textIn: 'all' | 'fields' | 'metadata'
  /**
   * An event must have one of the values of each field that occurs here. Each has at least two: a single
   * value is in the property of its field, because more indexes fit it. Ordered by `orderValues`.
   */
  anyOf: readonly FieldValue[] | null
  /** Events that have one of these values don't match. Ordered by `orderExclusions`. */
  excluded: readonly Exclusion[] | null
}

export const NO_FILTER: EventFilter = {
  fromMs: null,
  toMs: null,
  receivedFromMs: null,
  receivedToMs: null,
  category: null,
  action: null,
  projectId: null,
  actorId: null,
  actorEmail: null,
  resourceType: null,
  resourceId: null,
  traceId: null,
  actorRole: null,
  metadata: null,
  text: null,
  textIn: 'all',
  anyOf: null,
  excluded: null,
}

/** The maximum number of values per field. */
export const VALUES_PER_FIELD_MAX = 20

/** The fields that are compared for equality and have an index. */
export const INDEXED_FIELDS = [
  'category',
  'action',
  'projectId',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
] as const satisfies readonly (keyof EventFilter)[]
export type IndexedField = (typeof INDEXED_FIELDS)[number]

/** The fields that are compared for equality, in the order that cursors use. */
export const EQUALITY_FIELDS = [...INDEXED_FIELDS, 'traceId'] as const

/** Whether a filter has a range of times of receipt, which no index and no roll-up has. */
export function hasReceivedRange({ receivedFromMs, receivedToMs }: EventFilter): boolean {
  return receivedFromMs !== null || receivedToMs !== null
}

/** Whether a filter compares the metadata of events, which can take long if it is large. */
export function comparesMetadata({ metadata, text, textIn }: EventFilter): boolean {
  return metadata !== null || (text !== null && textIn !== 'fields')
}

/** The filter as text. Filters that differ only in the order of their parts have the same text. */
export function filterText(filter: EventFilter): string {
  return JSON.stringify([
    filter.fromMs,
    filter.toMs,
    ...EQUALITY_FIELDS.map((name) => filter[name]),
    filter.text,
    // Nothing is added without these, so that existing cursors stay valid.
    ...(filter.excluded ?? []).map(({ field, value }) => [field, value]),
    ...[...valuesByField(filter.anyOf ?? [])].map(([field, values]) => ['anyOf', field, ...values]),
    ...(filter.actorRole === null ? [] : [['actorRole', filter.actorRole]]),
    ...(filter.metadata ?? []).map(({ path, values }) => ['metadata', path, values]),
    ...(hasReceivedRange(filter) ? [['received', filter.receivedFromMs, filter.receivedToMs]] : []),
  ])
}

/** What a caller that compares an event with several filters has computed once. */
type SharedFacts = { facets: EventFacets; metadata: MetadataText | null }

/**
 * Whether an event matches. Equivalent to the conditions of `event-store.ts`, for an event that is not in the
 * database. Callers that already have the facets pass them, because parsing them costs more than everything else
 * here. Large metadata takes long to compare, so the result is then work that yields.
 */
export function matchEvent(
  event: SealedEvent,
  filter: EventFilter,
  shared: SharedFacts | null = null,
): Comparison {
  if (filter.fromMs !== null && event.timestampMs < filter.fromMs) return false
  if (filter.toMs !== null && event.timestampMs >= filter.toMs) return false
  if (!isReceivedIn(event, filter)) return false
  if (filter.category !== null && event.category !== filter.category) return false
  if (filter.action !== null && event.action !== filter.action) return false
  if (filter.projectId !== null && event.projectId !== filter.projectId) return false
  if (filter.traceId !== null && event.traceId !== filter.traceId) return false
  const { actorRole } = filter
  if (actorRole !== null && readFields(event.actor)['role'] !== actorRole) return false
  if (!comparesMetadata(filter)) return matchFacets(event, filter, shared)
  const metadata = shared?.metadata ?? textOf(event)
  const { terms } = matchersOf(filter)
  const hasTerms = terms === null || (metadata !== null && terms.compare(metadata))
  return (
    hasTerms !== false && compareAll(hasTerms, matchFacets(event, filter, { ...shared, metadata }))
  )
}

/** Compares what needs the facets, and the text. */
function matchFacets(
  { category, action, projectId, actor, resource }: SealedEvent,
  filter: EventFilter,
  shared: Partial<SharedFacts> | null,
): Comparison {
  const { text, anyOf, excluded } = filter
  const wanted = FACET_FIELDS.filter((name) => filter[name] !== null)
  if (wanted.length === 0 && text === null && anyOf === null && excluded === null) return true
  const values = { category, action, projectId, ...(shared?.facets ?? facetsOf(actor, resource)) }
  if (!wanted.every((name) => values[name] === filter[name])) return false
  if (excluded?.some(({ field, value }) => values[field] === value)) return false
  if (!hasOneOfEach(values, anyOf)) return false
  if (text === null) return true
  if (containsText(values, text)) return filter.textIn !== 'metadata'
  const { value } = matchersOf(filter)
  const metadata = shared?.metadata ?? null
  return value !== null && metadata !== null && value.compare(metadata)
}

function textOf({ metadata }: SealedEvent): MetadataText | null {
  return metadata === null ? null : new MetadataText(metadata)
}

type Matchers = { terms: TermsMatcher | null; value: ValueMatcher | null }

const matchers = new WeakMap<EventFilter, Matchers>()

/** Prepared once per filter. */
function matchersOf(filter: EventFilter): Matchers {
  const known = matchers.get(filter)
  if (known) return known
  const { metadata, text, textIn } = filter
  const prepared = {
    terms: metadata && new TermsMatcher(metadata),
    value: text === null || textIn === 'fields' ? null : new ValueMatcher(text),
  }
  matchers.set(filter, prepared)
  return prepared
}

function isReceivedIn(
  { receivedAtMs }: SealedEvent,
  { receivedFromMs, receivedToMs }: EventFilter,
): boolean {
  if (receivedFromMs !== null && receivedAtMs < receivedFromMs) return false
  return receivedToMs === null || receivedAtMs < receivedToMs
}

function hasOneOfEach(
  values: Record<FieldValue['field'], string | null>,
  anyOf: EventFilter['anyOf'],
): boolean {
  if (anyOf === null) return true
  const matched = new Set(anyOf.filter(({ field, value }) => values[field] === value).map(fieldOf))
  return anyOf.every(({ field }) => matched.has(field))
}

function fieldOf({ field }: FieldValue): FieldValue['field'] {
  return field
}

/** The fields that a free-text search covers. */
export const SEARCHED_FIELDS = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
] as const satisfies readonly (keyof EventFilter)[]
export type SearchedField = (typeof SEARCHED_FIELDS)[number]

function containsText(values: Record<SearchedField, string | null>, text: string): boolean {
  const folded = foldCase(text)
  return SEARCHED_FIELDS.some((name) => {
    const value = values[name]
    return value !== null && foldCase(value).includes(folded)
  })
}

const FACET_FIELDS = ['actorId', 'actorEmail', 'resourceType', 'resourceId'] as const
