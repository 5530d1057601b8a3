import { safely } from '../client/safely.ts'
import type { Recorder } from '../recorder/recorder.ts'
import { type RecordOptions, recordRequest } from './record-request.ts'
import { type OnDelivery, type ReceiveOptions, webhookResponse } from './receive-webhook.ts'

const FLUSH_MS_MAX = 10_000

/** Options of `recordNext`. */
type RecordNextOptions = RecordOptions<Request> & {
  /** The pattern of the route, such as `/api/invoices/[id]`, because Next.js doesn't pass it to a handler. */
  route?: string
  /**
   * Pass `after` from `next/server`. On a serverless platform, the process may stop after the response, so the
   * event is sent right away, and the platform waits for it.
   */
  after?: (task: () => Promise<void>) => void
}

/**
 * A route handler of the App Router that records its requests.
 *
 * ```ts
 * export const POST = recordNext(recorder, handler, { route: '/api/invoices', after })
 * ```
 */
export function recordNext<Context>(
  recorder: Pick<Recorder, 'record' | 'flush'>,
  handler: (request: Request, context: Context) => Response | Promise<Response>,
  options: RecordNextOptions = {},
) {
  return async (request: Request, context: Context): Promise<Response> => {
    const startedAtMs = performance.now()
    // What Next.js responds if the handler throws.
    let status = 500
    try {
      const response = await handler(request, context)
      status = response.status
      return response
    } finally {
      const info = {
        method: request.method,
        url: request.url,
        route: options.route ?? null,
        status,
        durationMs: performance.now() - startedAtMs,
        // Which header has it, and whether it can be trusted, depends on the platform.
        ip: null,
        userAgent: request.headers.get('user-agent'),
      }
      recordRequest(recorder, request, info, options)
      safely(() => options.after?.(() => flushSoon(recorder, options)))
    }
  }
}

/** During an outage, the platform must not wait until it ends. */
async function flushSoon(
  recorder: Pick<Recorder, 'flush'>,
  { onError }: RecordNextOptions,
): Promise<void> {
  try {
    await recorder.flush({ signal: AbortSignal.timeout(FLUSH_MS_MAX) })
  } catch (error) {
    safely(() => onError?.(error))
  }
}

/**
 * A route handler that receives webhooks.
 *
 * ```ts
 * export const POST = receiveNext(secret, async ({ event }) => { … })
 * ```
 */
export function receiveNext(
  secret: string | readonly string[],
  onDelivery: OnDelivery,
  options: ReceiveOptions = {},
) {
  return (request: Request): Promise<Response> =>
    webhookResponse(request, secret, onDelivery, options)
}
