import { Type } from 'typebox'
import type { EventFilter } from '../../../ledger/filter/event-filter.ts'
import type { Scope } from '../../../outlet/explorer/searches.ts'
import type { Clock } from '../../../platform/time/clock.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { hotSinceMsOf } from '../../../tenancy/plans.ts'
import { type Viewer, visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { type FilterInput, readFilter } from '../../event/event-filter-input.ts'
import {
  DateTime,
  NextCursor,
  Nullable,
  RECEIVED_RANGE,
  STRICT,
  TraceId,
  Uuid,
} from '../../schema/common.ts'
import { REPEATED_FILTERS } from '../../schema/event.ts'
import { Exclusions } from '../../schema/exclusion.ts'
import { ExportRow } from '../../schema/export-file.ts'
import { named } from '../../schema/named.ts'
import { SEARCH_PARAMETERS, SearchText } from '../../schema/search.ts'

export const EXPLORED_WORKSPACE = {
  workspaceId: Type.Optional({
    ...Uuid,
    description:
      'Only events of this workspace. Default: all that the member can see, without the system workspace.',
  }),
}

/** The explorer's filters, except for the time range. */
export const EXPLORED_FILTERS = {
  ...EXPLORED_WORKSPACE,
  ...RECEIVED_RANGE,
  ...REPEATED_FILTERS,
  ...SEARCH_PARAMETERS,
  text: Type.Optional(SearchText),
  not: Type.Optional(Exclusions),
}

export const EXPLORED_TRACE = {
  traceId: Type.Optional({ ...TraceId, description: 'Only events with this trace ID.' }),
}

export const ExplorerPage = named(
  'ExplorerPage',
  Type.Object(
    {
      data: Type.Array(ExportRow, { description: 'The events, in the order of `sort`.' }),
      nextCursor: NextCursor,
      hotSince: {
        ...DateTime,
        description:
          'The start of the hot time. Queries find events that Annals received since then.',
      },
      completeSince: {
        ...DateTime,
        description:
          'Queries find all events that Annals received since this time, which is after the last archived event.',
      },
      archivedUntil: {
        ...Nullable(DateTime),
        description:
          "The latest `timestamp` of the archived events. Queries don't find archived events, even those that Annals received since `hotSince`. Null if no event is archived.",
      },
    },
    { ...STRICT, description: 'A page of events.' },
  ),
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
  return {
    companyId: viewer.companyId,
    ...(await visibleWorkspaces(db, viewer, workspaceId)),
    hotSinceMs: hotSinceMsOf(viewer.plan, clock()),
    filter,
  }
}
