import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { EventFilter } from '../../../ledger/event-filter.ts'
import type { Scope } from '../../../outlet/console/searches.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg.ts'
import { DAY_MS } from '../../../platform/time-units.ts'
import { hotSinceMsOf } from '../../../tenancy/plans.ts'
import { type Viewer, visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { type FilterInput, readFilter } from '../../event-filter-input.ts'
import { DateTime, FilterText, STRICT, TraceId, Uuid } from '../../schema/common.ts'
import { EventPage, EventRecord } from '../../schema/event.ts'
import { Exclusions } from '../../schema/exclusion.ts'

const TRACE_RANGE_MS_MAX = DAY_MS

export const EXPLORED_RANGE = {
  from: Type.Optional({ ...DateTime, description: 'Inclusive.' }),
  to: Type.Optional({ ...DateTime, description: 'Exclusive.' }),
}

export const EXPLORED_WORKSPACE = {
  workspaceId: Type.Optional({
    ...Uuid,
    description: 'All that the member sees by default, without the company’s own activity.',
  }),
}

/** The explorer's filters, except for the time range. */
export const EXPLORED_FILTERS = {
  ...EXPLORED_WORKSPACE,
  category: Type.Optional(FilterText),
  action: Type.Optional(FilterText),
  projectId: Type.Optional(Uuid),
  actorId: Type.Optional(FilterText),
  actorEmail: Type.Optional(FilterText),
  resourceType: Type.Optional(FilterText),
  resourceId: Type.Optional(FilterText),
  text: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'Contained in category, action, actor id, actor e-mail, resource type or resource id. A to Z match either case.',
    }),
  ),
  not: Type.Optional(Exclusions),
}

export const EXPLORED_TRACE = {
  traceId: Type.Optional({
    ...TraceId,
    description: 'Needs `from` and `to`, at most 24 hours apart.',
  }),
}

/** A record with the data needed to recompute its hash. */
export const ProvableRecord = Type.Object({
  ...EventRecord.properties,
  sealed: Type.Object({}),
  salts: Type.Object({}),
})

export const ExplorerPage = Type.Object(
  {
    data: Type.Array(ProvableRecord),
    nextCursor: EventPage.properties.nextCursor,
    hotSince: { ...DateTime, description: 'Events received before are archived.' },
  },
  STRICT,
)

export type ExplorerInput = FilterInput & { workspaceId?: string }

/** The scope of an explorer request: which workspaces, since when, and which of their events. */
export type Explored = Scope & {
  workspaceId: WorkspaceId | null
  filter: EventFilter
}

export async function readExplored(
  { db, clock }: { db: Queryable; clock: Clock },
  viewer: Viewer,
  { workspaceId, ...input }: ExplorerInput,
): Promise<Explored> {
  const filter = readFilter(input, { fromPath: 'from' })
  refuseLongTrace(filter)
  return {
    companyId: viewer.companyId,
    ...(await visibleWorkspaces(db, viewer, workspaceId)),
    hotSinceMs: hotSinceMsOf(viewer.plan, clock()),
    filter,
  }
}

/** The trace id has no index, so a time range must limit the scan. */
function refuseLongTrace({ traceId, fromMs, toMs }: EventFilter): void {
  if (traceId === null) return
  if (fromMs !== null && toMs !== null && toMs - fromMs <= TRACE_RANGE_MS_MAX) return
  const message = 'requires from and to, at most 24 hours apart'
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: traceId ${message}.`,
    details: [{ path: 'traceId', message }],
  })
}
