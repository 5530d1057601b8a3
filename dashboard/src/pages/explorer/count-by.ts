import { canFilter } from '../../query/metadata.ts'
import { FIELD_LABELS } from '../../query/filters.ts'

/** The fields that the histogram and the facets can group by. */
export const COUNTED_FIELDS = [
  'category',
  'action',
  'actorEmail',
  'actorId',
  'resourceType',
  'resourceId',
  'projectId',
] as const
export type CountedField = (typeof COUNTED_FIELDS)[number]
/** The histogram can also group by a path of the metadata. */
export type CountBy = CountedField | `${typeof METADATA}${string}`

const METADATA = 'metadata.'

export function readCountBy(text = ''): CountBy | null {
  const field = COUNTED_FIELDS.find((name) => name === text)
  return field ?? (isMetadata(text) && canFilter(text.slice(METADATA.length), '') ? text : null)
}

function isMetadata(text: string): text is `${typeof METADATA}${string}` {
  return text.startsWith(METADATA)
}

/** The path of the metadata, or null for a field. */
export function metadataPath(by: CountBy): string | null {
  return isMetadata(by) ? by.slice(METADATA.length) : null
}

export function countLabel(by: CountBy): string {
  return isMetadata(by) ? by : FIELD_LABELS[by]
}

/** Events without a value are among the others. Every event has a category and an action. */
export function othersText(by: CountBy): string {
  return by === 'category' || by === 'action' ? 'Other' : 'Other or none'
}
