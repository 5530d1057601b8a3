import type { Recorder } from '../recorder/recorder.ts'
import { type RecordOptions, recordRequest } from './record-request.ts'
import { type OnDelivery, type ReceiveOptions, webhookResponse } from './receive-webhook.ts'

/** What this module uses of a Hono context. */
type HonoContext = {
  req: {
    raw: Request
    method: string
    url: string
    header(name: string): string | undefined
  }
  res: { status: number }
}

/**
 * Records the requests that change something. How to read the client's address depends on the runtime, so
 * add it to the metadata if you need it.
 *
 * ```ts
 * app.use(recordHono(recorder, { actor: (context) => ({ id: context.get('userId') }) }))
 * ```
 */
export function recordHono<Context extends HonoContext = HonoContext>(
  recorder: Pick<Recorder, 'record'>,
  options: RecordOptions<Context> & {
    /** The pattern of the route: `routePath(context, -1)` from `hono/route` returns that of the handler. */
    route?: (context: Context) => string
  } = {},
) {
  return async (context: Context, next: () => Promise<void>): Promise<void> => {
    const startedAtMs = performance.now()
    // Hono turns an error of a handler into a response before this continues.
    await next()
    const { method, url } = context.req
    const info = {
      method,
      url,
      route: options.route?.(context) ?? null,
      status: context.res.status,
      durationMs: performance.now() - startedAtMs,
      ip: null,
      userAgent: context.req.header('user-agent') ?? null,
    }
    recordRequest(recorder, context, info, options)
  }
}

/**
 * A route that receives webhooks.
 *
 * ```ts
 * app.post('/annals', receiveHono(secret, async ({ event }) => { … }))
 * ```
 */
export function receiveHono(
  secret: string | readonly string[],
  onDelivery: OnDelivery,
  options: ReceiveOptions = {},
) {
  return (context: { req: { raw: Request } }): Promise<Response> =>
    webhookResponse(context.req.raw, secret, onDelivery, options)
}
