import { ApiError } from '../../errors.ts'
import { type EventFilter, VALUES_PER_FIELD_MAX } from '../../ledger/filter/event-filter.ts'
import {
  EXCLUDED_FIELDS,
  type ExcludedField,
  orderValues,
  valuesByField,
} from '../../ledger/filter/exclusion.ts'
import {
  METADATA_PATH_LENGTH_MAX,
  type MetadataTerm,
  orderTerms,
} from '../../ledger/search/metadata-term.ts'
import { parseId } from '../../platform/id.ts'
import { parseRfc3339 } from '../../platform/time/rfc3339.ts'
import { readExclusions, readValues } from './exclusion-text.ts'

/** A filter as sent in a query or body, after validation by its schema. */
export type FilterInput = { [field in ExcludedField]?: string | readonly string[] } & {
  from?: string
  to?: string
  receivedFrom?: string
  receivedTo?: string
  traceId?: string
  actorRole?: string
  /** By path. */
  metadata?: Readonly<Record<string, string | readonly string[]>>
  /** Paths. */
  hasMetadata?: readonly string[]
  text?: string
  /** The API's name for `text`. */
  q?: string
  anyOf?: readonly string[]
  not?: readonly string[]
}

/** `fromPath` is the path of `from` in the request: a parameter's name, or a JSON pointer into the body. */
export function readFilter(input: FilterInput, { fromPath }: { fromPath: string }): EventFilter {
  const [fromMs, toMs] = readTimes(input.from, input.to)
  if (fromMs !== null && toMs !== null && fromMs >= toMs) {
    throw invalidParameterError(fromPath, 'must be before to')
  }
  const [receivedFromMs, receivedToMs] = readTimes(input.receivedFrom, input.receivedTo)
  if (receivedFromMs !== null && receivedToMs !== null && receivedFromMs >= receivedToMs) {
    const path = fromPath.replace(/from$/, 'receivedFrom')
    throw invalidParameterError(path, 'must be before receivedTo')
  }
  const values = readFieldValues(input, fromPath.replace(/from$/, 'anyOf'))
  const only = (field: ExcludedField) => {
    const [first = null, ...others] = values.get(field) ?? []
    return others.length === 0 ? first : null
  }
  const projectId = only('projectId')
  const several = orderValues(
    [...values].flatMap(([field, some]) =>
      some.length > 1 ? some.map((value) => ({ field, value })) : [],
    ),
  )
  return {
    fromMs,
    toMs,
    receivedFromMs,
    receivedToMs,
    category: only('category'),
    action: only('action'),
    projectId: projectId === null ? null : parseId<'project'>(projectId),
    actorId: only('actorId'),
    actorEmail: only('actorEmail'),
    resourceType: only('resourceType'),
    resourceId: only('resourceId'),
    traceId: input.traceId?.toLowerCase() ?? null,
    actorRole: input.actorRole ?? null,
    metadata: readTerms(input, fromPath.replace(/from$/, '')),
    text: input.text ?? input.q ?? null,
    textIn: 'all',
    anyOf: several.length === 0 ? null : several,
    excluded: readExclusions(input.not ?? []),
  }
}

function readTimes(from: string | undefined, to: string | undefined) {
  const readTime = (text: string | undefined) => (text === undefined ? null : parseRfc3339(text))
  return [readTime(from), readTime(to)] as const
}

/** `prefix` is where the filter's fields are in the request. */
function readTerms(
  { metadata = {}, hasMetadata = [] }: FilterInput,
  prefix: string,
): readonly MetadataTerm[] | null {
  for (const path of Object.keys(metadata)) {
    if (path !== '' && Array.from(path).length <= METADATA_PATH_LENGTH_MAX) continue
    throw invalidParameterError(
      `${prefix}metadata`,
      `must have paths of 1 to ${METADATA_PATH_LENGTH_MAX} characters`,
    )
  }
  return orderTerms([
    ...Object.entries(metadata).map(([path, values]) => ({ path, values: [values].flat() })),
    ...hasMetadata.map((path) => ({ path, values: null })),
  ])
}

/** The values of each field, whether they were sent under its name or in `anyOf`. */
function readFieldValues(
  input: FilterInput,
  anyOfPath: string,
): ReadonlyMap<ExcludedField, readonly string[]> {
  const named = EXCLUDED_FIELDS.flatMap((field) =>
    [input[field] ?? []].flat().map((text) => {
      const value = field === 'projectId' ? (parseId<'project'>(text) ?? text) : text
      return { field, value }
    }),
  )
  const values = valuesByField([...named, ...readValues(input.anyOf ?? [])])
  for (const [field, { length }] of values) {
    if (length <= VALUES_PER_FIELD_MAX) continue
    throw invalidParameterError(
      anyOfPath,
      `must have at most ${VALUES_PER_FIELD_MAX} values of ${field}`,
    )
  }
  return values
}

/** For a rule that a schema can't express. `path` is a parameter's name, or a JSON pointer into the body. */
export function invalidParameterError(path: string, message: string): ApiError {
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: ${path} ${message}.`,
    details: [{ path, message }],
  })
}
