import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { HttpListener, type ListenAddress } from './http-listener.ts'

/** Enough for a few scrapers with one or two connections each. */
const CONNECTIONS_MAX = 16

export type ScrapeDeps = {
  metrics: Metrics
  logger: Logger
  /** Called before each response. Sets the gauges that are read from elsewhere, and never rejects. */
  refresh: () => Promise<void>
}

/** GET /metrics on its own port, which is never exposed together with the API. */
export async function serveMetrics(
  { metrics: { registry }, logger, refresh }: ScrapeDeps,
  at: ListenAddress,
): Promise<HttpListener> {
  return await HttpListener.listen(
    {
      name: 'metrics',
      connectionsMax: CONNECTIONS_MAX,
      logger,
      serve: (request, response) => {
        if (request.method !== 'GET' || request.url !== '/metrics') {
          response.writeHead(404).end()
          return
        }
        refresh()
          .then(() => registry.metrics())
          .then(
            (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
            () => response.writeHead(500).end(),
          )
      },
    },
    at,
  )
}
