import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { ApiError } from '../errors.ts'
import { canonicalJson } from '../ledger/canonical.ts'
import { type EventId, TIMESTAMP_AHEAD_MS_MAX } from '../ledger/event.ts'
import type { Clock } from '../platform/time/clock.ts'
import { type CompanyId, parseId, type ProjectId, type WorkspaceId } from '../platform/id.ts'
import { CanonicalJson } from '../platform/json/json-reader.ts'
import { parseRfc3339 } from '../platform/time/rfc3339.ts'
import type { Span } from '../platform/otlp/tracer.ts'
import { TimeSlice } from '../platform/scheduling/time-slice.ts'
import { traceWait } from './ingest-trace.ts'
import type { Outcome, PendingItem } from './pending-item.ts'
import type { Writer } from './writer.ts'

/** An event as a client sends it, already validated against the schema. */
export type SubmittedEvent = {
  category: string
  action: string
  timestamp?: string
  projectId?: string
  actor?: { id?: string; email?: string; role?: string }
  resource?: { type?: string; id?: string }
  metadata?: Record<string, unknown> | CanonicalJson
  idempotencyKey?: string
}

/** Where an event comes from. The key and the request decide this, never the body. */
export type EventOrigin = {
  companyId: CompanyId
  workspaceId: WorkspaceId
  traceId: string
  /** The request. Null or missing if it isn't sampled. */
  span?: Span | null
}

export type AcceptResult = { id: EventId; isNew: boolean; hasOtherBody: boolean }

export type AcceptDeps = {
  writer: Writer
  clock: Clock
  /** Returns the ids that are not projects of the workspace. */
  listUnknownProjects: (
    workspace: { companyId: CompanyId; workspaceId: WorkspaceId },
    ids: ReadonlySet<ProjectId>,
  ) => Promise<ReadonlySet<ProjectId>>
}

/** Hex digits kept of a SHA-256: 128 bits, which fit a uuid column. */
const DIGEST_DIGITS = 32

/** Accepts one event. Returns only after the event is committed. */
export async function acceptEvent(
  input: SubmittedEvent,
  origin: EventOrigin,
  deps: AcceptDeps,
): Promise<AcceptResult> {
  const item = readInput(input, origin, deps.clock)
  const { projectId } = item.event
  if (projectId !== null) {
    const unknown = await deps.listUnknownProjects(origin, new Set([projectId]))
    if (unknown.size > 0) throw unknownProjectError()
  }
  const { span } = origin
  if (!span) return receiptOf(await deps.writer.submit(item))
  return receiptOf(await traceWait(span, [item], () => deps.writer.submit(item)))
}

/** Accepts many events and returns a receipt or an error for each, in the order of the inputs. */
export async function acceptEvents(
  inputs: readonly (SubmittedEvent | ApiError)[],
  origin: EventOrigin,
  deps: AcceptDeps,
): Promise<(AcceptResult | ApiError)[]> {
  const slice = new TimeSlice(origin.companyId)
  const read: (PendingItem | ApiError)[] = []
  for (const input of inputs) {
    read.push(input instanceof ApiError ? input : readOrRefuse(input, origin, deps.clock))
    if (slice.isOver) await slice.next()
  }
  const items = await refuseUnknownProjects(read, origin, deps)
  const readable = items.flatMap((item) => (item instanceof ApiError ? [] : [item]))
  const submit = () => deps.writer.submitAll(readable)
  const outcomes = await (origin.span ? traceWait(origin.span, readable, submit) : submit())
  let next = 0
  return items.map((item) => {
    if (item instanceof ApiError) return item
    const outcome = outcomes[next]
    next += 1
    if (outcome?.status !== 'fulfilled') throw outcome?.reason
    try {
      return receiptOf(outcome.value)
    } catch (error) {
      return invalidEventError(error)
    }
  })
}

function readOrRefuse(
  input: SubmittedEvent,
  origin: EventOrigin,
  clock: Clock,
): PendingItem | ApiError {
  try {
    return readInput(input, origin, clock)
  } catch (error) {
    return invalidEventError(error)
  }
}

async function refuseUnknownProjects(
  items: readonly (PendingItem | ApiError)[],
  origin: EventOrigin,
  deps: AcceptDeps,
): Promise<readonly (PendingItem | ApiError)[]> {
  const projectIdOf = (item: PendingItem | ApiError) =>
    item instanceof ApiError ? null : item.event.projectId
  const ids = new Set(items.map(projectIdOf).filter((id) => id !== null))
  if (ids.size === 0) return items
  const unknown = await deps.listUnknownProjects(origin, ids)
  if (unknown.size === 0) return items
  return items.map((item) => {
    const id = projectIdOf(item)
    return id !== null && unknown.has(id) ? unknownProjectError() : item
  })
}

/** Returns an error that is specific to one item. Any other error fails the whole call. */
function invalidEventError(error: unknown): ApiError {
  if (error instanceof ApiError && error.status === 400) return error
  throw error
}

function receiptOf(outcome: Outcome): AcceptResult {
  switch (outcome.kind) {
    case 'stored':
      return { id: outcome.id, isNew: true, hasOtherBody: false }
    case 'replayed':
      return { id: outcome.id, isNew: false, hasOtherBody: outcome.hasOtherBody }
    case 'refused':
      throw new ApiError('invalid_request', {
        message: "The database can't store this event. Change its contents.",
      })
    case 'crowded':
      throw new ApiError('overloaded', {
        message:
          'Other nodes are writing to this workspace. Retry after the delay in the Retry-After header.',
      })
    default:
      return outcome satisfies never
  }
}

function unknownProjectError(): ApiError {
  return new ApiError('unknown_project', {
    details: [{ path: '/projectId', message: 'is not a project of this workspace' }],
  })
}

function readInput(
  input: SubmittedEvent,
  { companyId, workspaceId, traceId }: EventOrigin,
  clock: Clock,
): PendingItem {
  const receivedAtMs = clock()
  const timestampMs = readTimestamp(input.timestamp, receivedAtMs)
  const projectId = input.projectId === undefined ? null : parseId<'project'>(input.projectId)
  const event = {
    companyId,
    workspaceId,
    projectId,
    timestampMs,
    receivedAtMs,
    category: input.category,
    action: input.action,
    traceId,
    actor: canonicalPart(input.actor),
    metadata: canonicalPart(input.metadata),
    resource: canonicalPart(input.resource),
  }
  const facets = {
    actorId: input.actor?.id ?? null,
    actorEmail: input.actor?.email ?? null,
    resourceType: input.resource?.type ?? null,
    resourceId: input.resource?.id ?? null,
  }
  if (input.idempotencyKey === undefined) return { event, facets, key: null }
  return {
    event,
    facets,
    key: {
      keyDigest: digestOf(input.idempotencyKey),
      // Check the timestamp the client sent, not the default, so that a retry without one matches.
      bodyCheck: crc32(
        `${input.category}\0${input.action}\0${input.timestamp === undefined ? '' : timestampMs}` +
          `\0${projectId}\0${event.actor}\0${event.metadata}\0${event.resource}`,
      ),
    },
  }
}

function readTimestamp(text: string | undefined, receivedAtMs: number): number {
  if (text === undefined) return receivedAtMs
  const timestampMs = parseRfc3339(text)
  if (timestampMs === null)
    throw invalidTimestampError('must be an RFC 3339 date-time with an offset')
  if (timestampMs > receivedAtMs + TIMESTAMP_AHEAD_MS_MAX) {
    throw invalidTimestampError("is more than 24 hours ahead of the server's clock")
  }
  return timestampMs
}

function invalidTimestampError(message: string): ApiError {
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: /timestamp ${message}.`,
    details: [{ path: '/timestamp', message }],
  })
}

function canonicalPart(part: object | undefined): string | null {
  if (part instanceof CanonicalJson) return part.text
  return part === undefined ? null : canonicalJson(part)
}

function digestOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, DIGEST_DIGITS)
}
