import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createHttpServer, type HttpTimeouts } from '../../../src/edge/http/http-server.ts'
import { OpenConnections } from '../../../src/edge/http/open-connections.ts'
import { createLogger } from '../../../src/platform/logger.ts'

/** A server configured like every port of the service, with the test's handler. */
export async function listenHttp(
  serve: RequestListener,
  { connectionsMax = 100, timeouts }: { connectionsMax?: number; timeouts?: Partial<HttpTimeouts> },
) {
  const logger = createLogger('silent')
  const connections = new OpenConnections({ port: 'api', connectionsMax, logger })
  const server = createHttpServer(serve, connections, timeouts)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  return {
    url: `http://127.0.0.1:${address.port}`,
    connections,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
