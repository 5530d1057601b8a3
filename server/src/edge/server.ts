import {
  fastify,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import type { AcceptDeps } from '../intake/accept-event.ts'
import type { ProofDeps } from '../outlet/proof/read-proof.ts'
import type { Logger } from '../platform/logger.ts'
import { createRequestTimer, type Metrics } from '../platform/metrics.ts'
import type { Tracer } from '../platform/otlp/tracer.ts'
import type { KeyGuard } from './auth/require-key.ts'
import type { SessionGuard } from './auth/require-session.ts'
import { BodyBudget } from './http/body-budget.ts'
import { CompanyShares, limitCompanies } from './http/company-share.ts'
import type { DashboardDeps } from './dashboard/dashboard-deps.ts'
import { DASHBOARD_ROUTES } from './dashboard/routes.ts'
import type { ResponseDelays } from './http/throttle/delay-responses.ts'
import { createErrorHandler, invalidUrlError, isHangUp, toApiError } from './error-handler.ts'
import type { ExportRouteDeps } from './export/export-resource.ts'
import type { HealthDeps } from './health.ts'
import { createHttpServer, HTTP_TIMEOUTS, type HttpTimeouts } from './http/http-server.ts'
import { parseJsonBodies } from './http/json-body.ts'
import { limitOutput } from './http/limit-output.ts'
import { handleUnknownRoutes } from './http/method-table.ts'
import type { OpenConnections } from './http/open-connections.ts'
import { collectRoutes } from './openapi/documents.ts'
import { serveOpenapi } from './openapi/serve-openapi.ts'
import type { OutputBudget } from './http/output-budget.ts'
import { servePages } from './pages.ts'
import { serveVerifier } from './serve-verifier.ts'
import { STRICT } from './schema/common.ts'
import { companyOf, limitHandlers, type RequestSlots } from './http/request-slots.ts'
import { registerFormats } from './schema/formats.ts'
import { traceIdOf, traceRequests } from './trace.ts'
import { compileValidator } from './validate.ts'
import { V1_ROUTES } from './v1/routes.ts'
import type { FeedDeps } from './feed/feed-follower.ts'
import type { GetKeyStatusDeps } from './v1/workspace/get-key-status.ts'
import type { ListEventsDeps } from './v1/event/list-events.ts'
import type { WebhookDeps } from './webhook/webhook-deps.ts'

export type ServerDeps = HealthDeps &
  GetKeyStatusDeps &
  ListEventsDeps &
  FeedDeps &
  WebhookDeps &
  ExportRouteDeps &
  ProofDeps &
  DashboardDeps &
  AcceptDeps & {
    delays: ResponseDelays
    keyGuard: KeyGuard
    sessionGuard: SessionGuard
    slots: RequestSlots
    logger: Logger
    metrics: Metrics
    /** Null without an OpenTelemetry endpoint. */
    tracer: Tracer | null
    connections: OpenConnections
    output: OutputBudget
    /** The folder of the dashboard's built pages, or null without them. */
    pagesFolder: string | null
  }

const BODY_BYTES_MAX = 256 * 1_024
/** A company can have unfinished request bodies on one in eight connections. */
const CONNECTIONS_PER_BODY = 8
/** Longer than any path can be, so that an overlong id is an unknown id and not an unknown path. */
const PARAM_LENGTH_MAX = 16_384

/** The compilers are set below. Without this, Fastify would also load its own. */
const NO_COMPILERS = { buildValidator: neverBuilt, buildSerializer: neverBuilt }

function neverBuilt(): never {
  throw new Error('Fastify requested a compiler that is already set.')
}

/** Builds the HTTP server with every route, in the order of the API contract. */
export async function buildServer(
  deps: ServerDeps,
  timeouts?: Partial<HttpTimeouts>,
): Promise<FastifyInstance> {
  registerFormats()
  const app = createApp(deps, timeouts)
  traceRequests(app, deps.tracer)
  observeRequests(app, deps)
  const recheckIfSlow = recheckSlowCallers(app, deps)
  limitCompanies(app, new CompanyShares(deps.connections))
  const checkOutput = limitOutput(app, deps.output)
  limitHandlers(app, deps, async (request, reply) => {
    await recheckIfSlow(request, reply)
    const refusal = checkOutput(request)
    if (refusal) throw refusal
  })
  const callerBodiesMax = Math.ceil(deps.connections.connectionsMax / CONNECTIONS_PER_BODY)
  const { anonymousBodyMs } = { ...HTTP_TIMEOUTS, ...timeouts }
  parseJsonBodies(app, { bodyBudget: new BodyBudget({ callerBodiesMax }), anonymousBodyMs })
  handleUnknownRoutes(app)
  refuseUnknownParameters(app)
  collectRoutes(app)

  for (const table of V1_ROUTES) await table.register(app, deps)
  for (const table of DASHBOARD_ROUTES) await table.register(app, deps)

  serveOpenapi(app)
  serveVerifier(app)
  servePages(app, deps.pagesFolder)
  await app.ready()
  return app
}

function createApp(
  {
    logger,
    connections,
    delays,
  }: Pick<ServerDeps, 'connections' | 'delays'> & { logger: FastifyBaseLogger },
  timeouts?: Partial<HttpTimeouts>,
): FastifyInstance {
  const handleError = createErrorHandler(delays.delayRefusal)
  const app = fastify({
    loggerInstance: logger,
    // The hook below logs requests.
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger per request costs more than parsing the request. Log lines include the trace id instead.
    childLoggerFactory: (parent) => parent,
    requestIdHeader: false,
    genReqId: (request) => traceIdOf(request.headers),
    bodyLimit: BODY_BYTES_MAX,
    // A request that arrives during shutdown is still served; then the connection closes.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    serverFactory: (serve) =>
      createHttpServer(serve, connections, timeouts, (request) => delays.siteOf(request)),
    // `createHttpServer` handles client errors itself.
    clientErrorHandler: () => {},
    frameworkErrors: handleError,
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: PARAM_LENGTH_MAX },
    schemaController: { compilersFactory: NO_COMPILERS },
  })
  app.setValidatorCompiler(compileValidator)
  // The contract tests check responses. A schema-based serializer would silently drop fields.
  app.setSerializerCompiler(() => (value) => JSON.stringify(value))
  app.setErrorHandler(handleError)
  delays.delayAnonymous(app)
  app.decorateRequest('principal')
  app.decorateRequest('key')
  app.decorateRequest('gate')
  app.decorateRequest('viewer')
  app.decorateRequest('clientAddress', '')
  return app
}

/** Routes that declare no query parameters refuse all of them. */
function refuseUnknownParameters(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (!route.schema?.operationId) return
    route.schema.querystring ??= Type.Object({}, STRICT)
  })
}

/** The operations that store events. */
const INGEST_OPERATIONS: ReadonlySet<string> = new Set(['createEvent', 'createEventBatch'])

function observeRequests(app: FastifyInstance, { keyGuard, logger, metrics }: ServerDeps): void {
  // These run for every request, so they use callbacks instead of creating a promise each.
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({
      'x-trace-id': request.id,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
    done(isDecodable(request.url) ? undefined : invalidUrlError())
  })
  app.addHook('onError', async (request, _reply, error) => {
    if (error instanceof ApiError && [401, 403, 429].includes(error.status)) {
      metrics.authenticationsRefused.inc({ code: error.code })
    }
    const operation = request.routeOptions.schema?.operationId ?? 'none'
    if (INGEST_OPERATIONS.has(operation) && !isHangUp(error, request)) {
      metrics.eventRequestsRefused.inc({ code: toApiError(error).code })
    }
  })
  // There is an alert on these, and a rate needs a first value to start from.
  for (const code of ['overloaded', 'unavailable', 'internal']) {
    metrics.eventRequestsRefused.inc({ code }, 0)
  }
  const timer = createRequestTimer(metrics)
  app.addHook('onResponse', (request, reply, done) => {
    keyGuard.noteUse(request, reply)
    const operation = request.routeOptions.schema?.operationId ?? 'none'
    timer(operation, reply.statusCode, reply.elapsedTime / 1_000)
    // Our own errors are logged where they are handled. One line per request is for debugging only.
    if (logger.isLevelEnabled('debug')) {
      logger.debug({
        event: 'request.answered',
        traceId: request.id,
        operation,
        status: reply.statusCode,
        durationMs: reply.elapsedTime,
      })
    }
    done()
  })
}

/** A request that takes longer to reach its handler counts as slow. */
const SLOW_MS = 250

/**
 * Access is checked before the body is read. The body can take half a minute to arrive, and the request can
 * then wait for a slot. A request whose key or session is revoked meanwhile must fail, so access is checked
 * again. Returns the check, for use after the wait.
 *
 * A search waits for its turn in the handler, so a member's access is also checked before the result is
 * sent. Changes check it in their transaction.
 */
function recheckSlowCallers(
  app: FastifyInstance,
  { keyGuard, sessionGuard }: Pick<ServerDeps, 'keyGuard' | 'sessionGuard'>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  const recheck = async (request: FastifyRequest): Promise<void> =>
    await (request.key ? keyGuard : sessionGuard).recheck(request)
  const recheckRead = async (request: FastifyRequest): Promise<void> =>
    await (request.key ? keyGuard.recheck(request) : sessionGuard.recheckRead(request))
  // A callback, because a promise per request costs more than the check.
  app.addHook('preHandler', (request, reply, done) => {
    if (reply.elapsedTime < SLOW_MS) done()
    // oxlint-disable-next-line promise/no-callback-in-promise -- see above
    else void recheck(request).then(() => done(), done)
  })
  app.addHook('onSend', (request, reply, _payload, done) => {
    const isSlow = reply.elapsedTime >= SLOW_MS && reply.statusCode < 400
    if (!isSlow || companyOf(request) === null || !isRead(request)) done()
    // oxlint-disable-next-line promise/no-callback-in-promise -- see above
    else void recheckRead(request).then(() => done(), done)
  })
  return async (request, reply) => {
    if (reply.elapsedTime >= SLOW_MS) await recheck(request)
  }
}

/** Running a view is a POST, but only reads. An event that is stored is acknowledged in any case. */
function isRead({ method, routeOptions: { config } }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD' || config.hasLargeResponses === true
}

/** The query parser passes through text that it can't decode. */
function isDecodable(url: string): boolean {
  if (!url.includes('%')) return true
  try {
    decodeURIComponent(url.slice(url.indexOf('?') + 1))
    return true
  } catch {
    return false
  }
}
