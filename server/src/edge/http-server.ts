import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http'
import { ConnectionGate } from './connection-gate.ts'

/** How long a caller may take to send its headers, and all of its request. */
export type Patience = { headersMs: number; requestMs: number; checkEveryMs: number }

export const PATIENCE: Patience = { headersMs: 10_000, requestMs: 30_000, checkEveryMs: 1_000 }
const KEEP_ALIVE_MS = 72_000

/**
 * An HTTP server whose connections answer in order and cannot end the process, whatever they send.
 * Every port of the service is one.
 */
export function createHttpServer(serve: RequestListener, patience: Patience = PATIENCE): Server {
  const gate = new ConnectionGate(serve)
  const server = createServer(
    {
      headersTimeout: patience.headersMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: patience.checkEveryMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Node would answer with an empty body, and after it serve what follows.
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
 * A request that never takes over its connection. For CONNECT Node would detach the socket: without
 * an error listener, so that a client that hangs up ends the process, and without the answers that
 * requests before it still wait for. This way CONNECT arrives as a request like any other.
 */
class OrdinaryRequest extends IncomingMessage {
  /** Node sets it while it parses, and detaches the socket when it is true. */
  get upgrade(): boolean {
    return false
  }

  set upgrade(_isUpgrade: boolean) {
    // Stays false.
  }
}
