import { safely } from '../client/safely.ts'
import type { Recorder } from '../recorder/recorder.ts'
import { type RecordOptions, recordRequest } from './record-request.ts'
import { type OnDelivery, type ReceiveOptions, receiveWebhook } from './receive-webhook.ts'

/** What this module uses of an Express request. */
type ExpressRequest = AsyncIterable<Uint8Array> & {
  method: string
  originalUrl: string
  baseUrl: string
  params?: Record<string, unknown>
  route?: { path?: unknown }
  ip?: string | undefined
  headers: Record<string, string | string[] | undefined>
  body?: unknown
}

/** What this module uses of an Express response. */
type ExpressResponse = {
  statusCode: number
  once(event: 'close', listener: () => void): unknown
  status(code: number): { json(body: object): unknown }
}

/**
 * Records the requests that change something, once they are answered. Use it before the routes.
 *
 * ```ts
 * app.use(recordExpress(recorder, { actor: (request) => ({ id: request.user.id }) }))
 * ```
 */
export function recordExpress<Request extends ExpressRequest = ExpressRequest>(
  recorder: Pick<Recorder, 'record'>,
  options: RecordOptions<Request> = {},
) {
  return (request: Request, response: ExpressResponse, next: () => void): void => {
    const startedAtMs = performance.now()
    // This also records requests whose client disconnected, because the handler may have finished its work.
    response.once('close', () => {
      const userAgent = request.headers['user-agent']
      const info = {
        method: request.method,
        url: request.originalUrl,
        route: routeOf(request),
        status: response.statusCode,
        durationMs: performance.now() - startedAtMs,
        ip: request.ip ?? null,
        userAgent: typeof userAgent === 'string' ? userAgent : null,
      }
      recordRequest(recorder, request, info, options)
    })
    next()
  }
}

/**
 * A route that receives webhooks. Mount it before `express.json()`, or use `express.raw` on the route: the
 * signature covers the bytes as they arrived.
 *
 * ```ts
 * app.post('/annals', receiveExpress(secret, async ({ event }) => { … }))
 * ```
 */
export function receiveExpress(
  secret: string | readonly string[],
  onDelivery: OnDelivery,
  options: ReceiveOptions = {},
) {
  return async (request: ExpressRequest, response: ExpressResponse): Promise<void> => {
    const received = { headers: request.headers, body: rawBodyOf(request, options) }
    const { status, body } = await receiveWebhook(received, secret, onDelivery, options)
    response.status(status).json(body)
  }
}

/**
 * Express keeps the pattern of the route, but of a router's mount path only the text that matched. Its
 * parameters are known if the router has `mergeParams`.
 */
function routeOf({ baseUrl, params = {}, route }: ExpressRequest): string | null {
  if (typeof route?.path !== 'string') return null
  const names = new Map(Object.entries(params).map(([name, value]) => [value, `:${name}`]))
  const mount = baseUrl.split('/').map((segment) => names.get(decoded(segment)) ?? segment)
  return mount.join('/') + route.path
}

/** Like the values of `params`. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

function rawBodyOf(request: ExpressRequest, { onError }: ReceiveOptions) {
  const { body } = request
  if (body instanceof Uint8Array || typeof body === 'string') return body
  if (body !== undefined && body !== null) {
    const message = 'The body was parsed before receiveExpress. Mount it before express.json().'
    safely(() => onError?.(new TypeError(message)))
  }
  return request
}
