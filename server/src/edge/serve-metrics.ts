import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { MonotonicClock } from '../platform/time/clock.ts'
import { CHECK_RATE, ResponseThrottle } from './http/throttle/response-throttle.ts'
import { HttpListener, type ListenAddress } from './http-listener.ts'

/** Enough for a few scrapers with one or two connections each. */
const CONNECTIONS_MAX = 16
/** Rendering takes several milliseconds, so a flood of requests gets the same text for this long. */
const RENDER_MS_MIN = 1_000
/** Per address. Sending the text costs as much of the main thread as a few events. */
const SCRAPE_RATE = { ...CHECK_RATE, perSecond: 100 }

export type ScrapeDeps = {
  metrics: Pick<Metrics, 'registry'>
  monotonic: MonotonicClock
  logger: Logger
  /** Called before each rendering. Sets the gauges that are read from elsewhere, and never rejects. */
  refresh: () => Promise<void>
  mergeMetrics?: MergeMetrics | undefined
}

/** Adds the metrics of other processes to the text with those of this one. */
export type MergeMetrics = (own: string) => Promise<string>

/** GET /metrics on its own port, which is never exposed together with the API. */
export async function serveMetrics(
  { metrics: { registry }, monotonic, logger, refresh, mergeMetrics }: ScrapeDeps,
  at: ListenAddress,
): Promise<HttpListener> {
  const render = shareResult(async () => {
    await refresh()
    const own = await registry.metrics()
    return mergeMetrics ? await mergeMetrics(own) : own
  }, monotonic)
  const answer = ({ method, url }: IncomingMessage, response: ServerResponse) => {
    if (method !== 'GET' || url !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    render().then(
      (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    )
  }
  const throttle = new ResponseThrottle(SCRAPE_RATE)
  const serve: RequestListener = (request, response) => {
    throttle.hold(request.socket.remoteAddress ?? '', response, () => answer(request, response))
  }
  return await HttpListener.listen(
    { name: 'metrics', connectionsMax: CONNECTIONS_MAX, logger, serve },
    at,
  )
}

/** Returns the result of a call that is running or that began less than a second ago, or else calls `work`. */
function shareResult<T>(work: () => Promise<T>, clock: MonotonicClock): () => Promise<T> {
  let shared: { result: Promise<T>; isRunning: boolean; startedAtMs: number } | null = null
  return () => {
    const nowMs = clock()
    if (shared && (shared.isRunning || nowMs - shared.startedAtMs < RENDER_MS_MIN)) {
      return shared.result
    }
    const call = { result: work(), isRunning: true, startedAtMs: nowMs }
    const end = () => void (call.isRunning = false)
    call.result.then(end, end)
    shared = call
    return call.result
  }
}
