import type { JsonObject } from './json-object.ts'

const RATE_LIMIT = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'] as const

/** Descriptions of the response headers, for `components.headers`. */
const HEADERS = {
  'x-trace-id': {
    description:
      'The trace ID of the request: from `traceparent` if you sent it, otherwise new. Quote it when you report a problem.',
    required: true,
    schema: { type: 'string', pattern: '^[0-9a-f]{32}$' },
  },
  'RateLimit-Limit': {
    description:
      'Tokens in a full bucket. The three `RateLimit` headers are missing if the plan has no rate limit.',
    schema: { type: 'integer', minimum: 0 },
  },
  'RateLimit-Remaining': {
    description: 'Tokens left in the bucket.',
    schema: { type: 'integer', minimum: 0 },
  },
  'RateLimit-Reset': {
    description: 'Seconds until the bucket is full again.',
    schema: { type: 'integer', minimum: 0 },
  },
  'Retry-After': {
    description: 'Wait this many seconds before you retry.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'WWW-Authenticate': {
    description: 'The authentication scheme: `Bearer`.',
    required: true,
    schema: { type: 'string' },
  },
  'x-hot-since': {
    description: 'The query finds all events that Annals received since this time.',
    required: true,
    schema: { type: 'string', format: 'date-time' },
  },
  'x-idempotent-replay': {
    description: '`true` if an event with this idempotency key was already stored.',
    required: true,
    schema: { type: 'string', const: 'true' },
  },
  'x-idempotency-mismatch': {
    description:
      '`true` if the stored event has a different body. The stored event was not changed.',
    schema: { type: 'string', const: 'true' },
  },
  'x-service-schema-drift': {
    description:
      'The table that the database is missing. Values that depend on it are empty or 0 in the response.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, JsonObject>

type HeaderName = keyof typeof HEADERS

const HEADER_NAMES = Object.keys(HEADERS).filter(isHeaderName)

function isHeaderName(name: string): name is HeaderName {
  return name in HEADERS
}

/** Headers of the 200 responses of single operations. */
const OPERATION_HEADERS: Readonly<Partial<Record<HeaderName, readonly string[]>>> = {
  'x-idempotent-replay': ['createEvent'],
  'x-idempotency-mismatch': ['createEvent'],
  'x-hot-since': ['listEvents', 'listDashboardEvents', 'runExplorerView'],
  'x-service-schema-drift': [
    'getCompany',
    'getEventHistogram',
    'getUsage',
    'listArchivedEvents',
    'listBrokenChains',
    'listChains',
    'listCheckpoints',
    'listDashboardDeliveries',
    'listDashboardEventTypes',
    'listDashboardEvents',
    'listDashboardExports',
    'listDashboardWebhooks',
    'listEventDeliveries',
    'listExplorerViews',
    'listExportTemplates',
    'listFilterOptions',
    'listInvitations',
    'listKeys',
    'listMembers',
    'listNotices',
    'listProjects',
    'listSessions',
    'listVerifyRuns',
    'listWorkspaces',
    'runExplorerView',
  ],
}

/** Some operations of the dashboard have the names of operations of the API, which has no such header. */
function isOfDashboard(name: HeaderName): boolean {
  return name === 'x-service-schema-drift'
}

/** A conflict can end on its own. */
const RETRY_LATER = {
  description: 'Wait this many seconds before you retry. Missing if waiting doesn’t help.',
  schema: { type: 'integer', minimum: 0 },
}

/** References to the headers of a response. */
export function headersOf(status: number, isKeyed: boolean, operationId = ''): JsonObject {
  const names: HeaderName[] = [
    'x-trace-id',
    ...(isKeyed && status !== 401 ? RATE_LIMIT : []),
    ...(isKeyed && status === 401 ? (['WWW-Authenticate'] as const) : []),
    ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
    ...HEADER_NAMES.filter(
      (name) =>
        status === 200 &&
        OPERATION_HEADERS[name]?.includes(operationId) &&
        !(isKeyed && isOfDashboard(name)),
    ),
  ]
  return {
    ...Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...(status === 409 && { 'Retry-After': RETRY_LATER }),
  }
}

/** The headers that `text`, a document, refers to. */
export function sharedHeaders(text: string): JsonObject {
  return Object.fromEntries(
    Object.entries(HEADERS).filter(([name]) => text.includes(`"#/components/headers/${name}"`)),
  )
}
