import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Metrics } from '../platform/metrics.ts'
import { createHttpServer } from './http-server.ts'

/** GET /metrics on a port of its own, which is never exposed with the API. */
export class MetricsListener implements AsyncDisposable {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(
    metrics: Metrics,
    at: { host: string; port: number },
  ): Promise<MetricsListener> {
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
    })
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
