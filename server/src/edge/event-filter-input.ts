import { ApiError } from '../errors.ts'
import type { EventFilter } from '../ledger/event-filter.ts'
import { parseId } from '../platform/id.ts'
import { parseRfc3339 } from '../platform/time/rfc3339.ts'
import { readExclusions } from './exclusion-text.ts'

/** A filter as sent in a query or body, after validation by its schema. */
export type FilterInput = {
  from?: string
  to?: string
  category?: string
  action?: string
  projectId?: string
  actorId?: string
  actorEmail?: string
  resourceType?: string
  resourceId?: string
  traceId?: string
  text?: string
  not?: readonly string[]
}

/** `fromPath` is the path of `from` in the request: a parameter's name, or a JSON pointer into the body. */
export function readFilter(input: FilterInput, { fromPath }: { fromPath: string }): EventFilter {
  const fromMs = input.from === undefined ? null : parseRfc3339(input.from)
  const toMs = input.to === undefined ? null : parseRfc3339(input.to)
  if (fromMs !== null && toMs !== null && fromMs >= toMs) {
    throw invalidParameter(fromPath, 'must be before to')
  }
  return {
    fromMs,
    toMs,
    category: input.category ?? null,
    action: input.action ?? null,
    projectId: input.projectId === undefined ? null : parseId<'project'>(input.projectId),
    actorId: input.actorId ?? null,
    actorEmail: input.actorEmail ?? null,
    resourceType: input.resourceType ?? null,
    resourceId: input.resourceId ?? null,
    traceId: input.traceId?.toLowerCase() ?? null,
    text: input.text ?? null,
    excluded: readExclusions(input.not ?? []),
  }
}

/** For a rule that a schema can't express. `path` is a parameter's name, or a JSON pointer into the body. */
export function invalidParameter(path: string, message: string): ApiError {
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: ${path} ${message}.`,
    details: [{ path, message }],
  })
}
