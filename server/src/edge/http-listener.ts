import { once } from 'node:events'
import type { RequestListener, Server } from 'node:http'
import type { Logger } from '../platform/logger.ts'
import { createHttpServer, type HttpTimeouts } from './http/http-server.ts'
import { OpenConnections } from './http/open-connections.ts'

export type ListenAddress = { host: string; port: number }

type ListenerOptions = {
  /** Names the port in the log. */
  name: 'metrics' | 'witness'
  connectionsMax: number
  serve: RequestListener
  logger: Logger
  timeouts?: Partial<HttpTimeouts>
}

/** A port that serves requests without Fastify. */
export class HttpListener implements AsyncDisposable {
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(
    { name, connectionsMax, serve, logger, timeouts }: ListenerOptions,
    at: ListenAddress,
  ): Promise<HttpListener> {
    const connections = new OpenConnections({ port: name, connectionsMax, logger })
    const server = createHttpServer(serve, connections, timeouts)
    server.listen(at)
    await once(server, 'listening')
    return new HttpListener(server)
  }

  /** If the address has port 0, the port that the system chose. */
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
