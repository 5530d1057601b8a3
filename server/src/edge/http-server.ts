import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http'
import { ConnectionGate } from './connection-gate.ts'

/** How long a client can take to send its headers, and its whole request. */
export type Patience = { headersMs: number; requestMs: number; checkEveryMs: number }

export const PATIENCE: Patience = { headersMs: 10_000, requestMs: 30_000, checkEveryMs: 1_000 }
const KEEP_ALIVE_MS = 72_000

/**
 * An HTTP server that answers each connection's requests in order and survives anything that a client
 * sends. Every port of the service uses it.
 */
export function createHttpServer(serve: RequestListener, patience: Patience = PATIENCE): Server {
  const gate = new ConnectionGate(serve)
  const server = createServer(
    {
      headersTimeout: patience.headersMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: patience.checkEveryMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Node would respond with an empty body and keep serving the connection.
      requireHostHeader: false,
      IncomingMessage: OrdinaryRequest,
    } satisfies ServerOptions<typeof OrdinaryRequest>,
    gate.admit,
  )
  server.on('checkExpectation', gate.admit)
  server.on('clientError', gate.refuseUnreadable)
  return server
}

/**
 * A request that never takes over its connection. On CONNECT, Node would detach the socket and leave it
 * without an error listener, so a client that disconnects would end the process. Earlier requests on
 * the connection would lose their responses. With this class, CONNECT arrives like any other request.
 */
class OrdinaryRequest extends IncomingMessage {
  /** Node's parser sets this flag, and Node detaches the socket if it is true. */
  get upgrade(): boolean {
    return false
  }

  set upgrade(_isUpgrade: boolean) {
    // Ignore the parser: the flag stays false.
  }
}
