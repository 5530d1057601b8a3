import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { createHttpServer } from './http/http-server.ts'
import { OpenConnections } from './http/open-connections.ts'

/** Enough for a few scrapers with one or two connections each. */
const CONNECTIONS_MAX = 16

/** GET /metrics on its own port, which is never exposed together with the API. */
export class MetricsListener implements AsyncDisposable {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(
    { metrics, logger }: { metrics: Metrics; logger: Logger },
    at: { host: string; port: number },
  ): Promise<MetricsListener> {
    const connections = new OpenConnections({
      port: 'metrics',
      connectionsMax: CONNECTIONS_MAX,
      logger,
    })
    const server = createHttpServer((request, response) => {
      if (request.method !== 'GET' || request.url !== '/metrics') {
        response.writeHead(404).end()
        return
      }
      metrics.registry.metrics().then(
        (text) =>
          response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      )
    }, connections)
    server.listen(at)
    await once(server, 'listening')
    return new MetricsListener(server)
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }
}
