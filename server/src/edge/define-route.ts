import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  ContextConfigDefault,
  FastifyContextConfig,
  FastifyInstance,
  FastifyPluginAsync,
  FastifySchema,
  preHandlerHookHandler,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
  RouteGenericInterface,
  RouteHandlerMethod,
  RouteShorthandOptions,
} from 'fastify'
import type { TSchema } from 'typebox'
import type { ErrorCode } from '../errors.ts'
import type { Gate } from './auth/gate.ts'
import type { Hook } from './auth/require-key.ts'
import { guardOptions, type Guards, type RouteGuard } from './auth/route-guard.ts'
import { readAbsentBody, refuseBody } from './http/no-body.ts'

/** Who can call an operation, what it accepts, what it returns and what it does. */
type Definition<Deps, Params, Query, Body, Response> = Description<
  Params,
  Query,
  Body,
  Response
> & {
  config?: Pick<
    FastifyContextConfig,
    'hasOwnLimits' | 'hasLargeResponses' | 'isSearch' | 'isLongRunning'
  >
  /** For the few routes that need more of Fastify. */
  options?: Pick<
    RouteShorthandOptions,
    'bodyLimit' | 'exposeHeadRoute' | 'onSend' | 'validatorCompiler'
  >
  /** Creates a check that runs after the guard and before the body is read. */
  before?: (deps: Deps, app: FastifyInstance) => Hook
  /** Creates the handler, once. `app` is the scope of this route alone. */
  handle: (deps: Deps, app: FastifyInstance) => Handler<Schema<Params, Query, Body, Response>>
}

type Description<Params, Query, Body, Response> = RouteGuard & {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  summary: string
  description: string
  params?: Params
  query?: Query
  /** Without one, the route refuses bodies. */
  body?: Body
  /** No body means an empty one. */
  isBodyOptional?: true
  /** Documented only: the handler reads them. */
  headers?: TSchema
  /** A schema for 200, or one per status. If there is only one status, the handler doesn't set it. */
  response?: Response
  /** The content type of the response, if it isn't JSON. */
  produces?: string
  /** Errors that don't follow from the guard and the parameters. */
  errors?: readonly ErrorCode[]
}

type Schema<Params, Query, Body, Response> = FastifySchema & {
  params: Params
  querystring: Query
  body: Body
  response: Responses<Response>
}

type Responses<Response> = keyof Response extends number ? Response : { 200: Response }

type Handler<S extends FastifySchema> = RouteHandlerMethod<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  RouteGenericInterface,
  ContextConfigDefault,
  S,
  TypeBoxTypeProvider
>

/** An operation that is not yet in a table. */
type Route<Deps> = {
  guard: RouteGuard
  register: (app: FastifyInstance, deps: Deps, operation: Operation) => Promise<void>
}

type Operation = { operationId: string; tag: string; guards: Guards }

/** Without a name, Fastify compares the plugin with every loaded module to find one. */
const PLUGIN_NAME = Symbol.for('fastify.display-name')

/** The table that lists the route gives it its `operationId` and its tag. */
export function defineRoute<
  Deps = unknown,
  Params extends TSchema | undefined = undefined,
  Query extends TSchema | undefined = undefined,
  Body extends TSchema | undefined = undefined,
  Response extends TSchema | undefined = undefined,
>(definition: Definition<Deps, Params, Query, Body, Response>): Route<Deps> {
  const { method, path, options, before, handle } = definition
  return {
    guard: definition,
    register: async (app, deps, operation) => {
      const guard = guardOptions(definition, operation.guards)
      const plugin: FastifyPluginAsync = async (scope) => {
        const check = before?.(deps, scope)
        scope
          .withTypeProvider<TypeBoxTypeProvider>()
          .route<
            RouteGenericInterface,
            ContextConfigDefault,
            Schema<Params, Query, Body, Response>
          >({
            ...guard,
            ...options,
            ...hooksOf(definition),
            method,
            url: path,
            onRequest: check ? [...guard.onRequest, check] : guard.onRequest,
            config: { ...guard.config, ...definition.config },
            schema: schemaOf(definition, operation),
            handler: handle(deps, scope),
          })
      }
      await app.register(Object.assign(plugin, { [PLUGIN_NAME]: operation.operationId }))
    },
  }
}

function hooksOf({
  method,
  body,
  isBodyOptional,
  response = {},
}: Description<unknown, unknown, unknown, unknown>) {
  const [status = 200, ...others] = Object.keys(responsesOf(response)).map(Number)
  return {
    ...(method !== 'GET' && body === undefined && { preValidation: refuseBody }),
    ...(isBodyOptional && { preValidation: readAbsentBody }),
    ...(status !== 200 && others.length === 0 && { preHandler: setStatus(status) }),
  }
}

/** An error that is thrown later sets its own. */
function setStatus(status: number): preHandlerHookHandler {
  return (_request, reply, done) => {
    reply.code(status)
    done()
  }
}

function schemaOf<Params, Query, Body, Response>(
  route: Description<Params, Query, Body, Response>,
  { operationId, tag }: Operation,
): Schema<Params, Query, Body, Response>
function schemaOf(
  route: Description<unknown, unknown, unknown, unknown>,
  { operationId, tag }: Operation,
): FastifySchema {
  const { summary, description, params, query, body, headers, response, errors, produces } = route
  // Fastify warns about a part that is present but undefined.
  return {
    operationId,
    summary,
    description,
    tags: [tag],
    ...(route.public && { security: [] }),
    ...(params !== undefined && { params }),
    ...(query !== undefined && { querystring: query }),
    ...(headers !== undefined && { headers }),
    ...(body !== undefined && { body }),
    ...(errors !== undefined && { errors }),
    ...(produces !== undefined && { produces }),
    ...(response !== undefined && { response: responsesOf(response) }),
  }
}

function responsesOf(response: unknown): object {
  const isByStatus =
    typeof response === 'object' &&
    response !== null &&
    Object.keys(response).every((name) => /^\d{3}$/.test(name))
  return isByStatus ? response : { 200: response }
}

/** The operations of one area. `Deps` is what their handlers need together. */
type RouteTable<Deps> = {
  /** What each operation requires of a key, by `operationId`, for those that require one. */
  gates: ReadonlyMap<string, Gate>
  register: (app: FastifyInstance, deps: Deps & Guards) => Promise<void>
}

/** The name under which the table lists a route is its `operationId`. */
export function listRoutes<Routes extends Record<string, Route<never>>>(
  tag: string,
  routes: Routes,
): RouteTable<DepsOf<Routes>> {
  const gates = Object.entries(routes).flatMap(([operationId, { guard }]): [string, Gate][] =>
    guard.key ? [[operationId, guard.key]] : [],
  )
  return { gates: new Map(gates), register: registerAll(tag, routes) }
}

function registerAll<Routes extends Record<string, Route<never>>>(
  tag: string,
  routes: Routes,
): RouteTable<DepsOf<Routes>>['register']
function registerAll(
  tag: string,
  routes: Record<string, Route<never>>,
): RouteTable<never>['register'] {
  return async (app, deps) => {
    for (const [operationId, route] of Object.entries(routes)) {
      await route.register(app, deps, { operationId, tag, guards: deps })
    }
  }
}

type DepsOf<Routes> = Routes[keyof Routes] extends Route<infer Deps> ? Deps : never
