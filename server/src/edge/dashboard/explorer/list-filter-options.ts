import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { NO_FILTER } from '../../../ledger/filter/event-filter.ts'
import { VALUE_FIELDS } from '../../../ledger/rollup/rollup-store.ts'
import { readFilterOptions } from '../../../outlet/explorer/filter-option/filter-options.ts'
import { listProjectNames } from '../../../tenancy/workspace/project-name-store.ts'
import { defineRoute } from '../../define-route.ts'
import { invalidParameterError } from '../../event/event-filter-input.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { compressResponse } from '../../http/compress-response.ts'
import { STRICT, TIME_RANGE } from '../../schema/common.ts'
import { REPEATED_FILTERS } from '../../schema/event.ts'
import { Exclusions } from '../../schema/exclusion.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { EXPLORED_WORKSPACE, readExplored } from './explorer-query.ts'

const LIMIT_DEFAULT = 20
/** The counts of other fields come from a table of values, which doesn't know the events' other fields. */
const COUNTED_RULE = 'requires from and to, and is only available for category and action'

const OptionsQuery = Type.Object(
  {
    field: Type.Enum([...VALUE_FIELDS], { description: 'The field whose values to list.' }),
    contains: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Only values that contain this text. The letters A to Z match in either case.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 50,
        default: 20,
        description: 'The maximum number of values.',
      }),
    ),
    ...EXPLORED_WORKSPACE,
    ...TIME_RANGE,
    category: REPEATED_FILTERS.category,
    action: REPEATED_FILTERS.action,
    not: Type.Optional(Exclusions),
  },
  STRICT,
)

const FilterOptions = Type.Object(
  {
    field: Type.Enum([...VALUE_FIELDS], { description: 'The field.' }),
    values: Type.Array(
      Type.Object(
        {
          value: Type.String({ description: 'The value.' }),
          label: Type.Optional(Type.String({ description: 'The name of the project.' })),
          count: Type.Integer({ description: 'How many hot events have it.' }),
        },
        STRICT,
      ),
      { description: 'The values, most frequent first.' },
    ),
    isComplete: Type.Boolean({
      description: 'False if the field has too many values to list all.',
    }),
  },
  { ...STRICT, description: 'The values of the field.' },
)

/** GET /dashboard/events/filter-options: the values of a field and how many hot events have each. */
export const listFilterOptions = defineRoute({
  method: 'GET',
  path: '/dashboard/events/filter-options',
  member: 'events.read',
  config: { hasOwnLimits: true },
  options: {
    onSend: compressResponse,
  },
  summary: 'Suggest filter values',
  description:
    'Returns values with exact counts. The time range and the filters `category`, `action` and `not` are for category and action; the filters require a time range. Other fields are counted over all hot events.',
  query: OptionsQuery,
  errors: ['not_found'],
  response: FilterOptions,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'searches'>) =>
    async ({ viewer, query: { field, contains, limit, ...input } }, reply) => {
      const explored = await readExplored(deps, viewer, input)
      const { fromMs, toMs, category, action, anyOf, excluded } = explored.filter
      const scope = { ...explored, signal: disconnectSignal(reply) }
      if ((fromMs === null) !== (toMs === null)) {
        throw new ApiError('invalid_request', {
          message: 'Only one of from and to was sent. Send both, or neither.',
        })
      }
      const isCounted = field === 'category' || field === 'action'
      const filters = { category: input.category, action: input.action, not: input.not }
      for (const [name, value] of Object.entries(filters)) {
        if (value === undefined || (isCounted && fromMs !== null)) continue
        throw invalidParameterError(name, COUNTED_RULE)
      }
      const query = {
        field,
        contains: contains ?? null,
        range: fromMs === null || toMs === null ? null : { fromMs, toMs },
        filter: { ...NO_FILTER, category, action, anyOf, excluded },
        limit: limit ?? LIMIT_DEFAULT,
      }
      const { values, isComplete } = await readOrReportDrift(
        reply,
        { values: [], isComplete: true },
        () => readFilterOptions(deps.searches, scope, query),
      )
      const names = await readOrReportDrift(reply, new Map<string, string>(), async () =>
        field === 'projectId'
          ? await listProjectNames(deps.db, explored.workspaceIds)
          : new Map<string, string>(),
      )
      return {
        field,
        values: values.map(({ value, events }) => {
          const label = names.get(value)
          return { value, ...(label !== undefined && { label }), count: events }
        }),
        isComplete,
      }
    },
})
