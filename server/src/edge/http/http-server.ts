import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http'
import type { Socket } from 'node:net'
import { type CallerOf, ConnectionGate } from './connection-gate.ts'
import type { OpenConnections } from './open-connections.ts'

/** How long a client can take. */
export type HttpTimeouts = {
  /** To send its headers. */
  headersMs: number
  /** To send its whole request. */
  requestMs: number
  /** To send a body without a key or session. */
  anonymousBodyMs: number
  /** To read at least some of a response. */
  writeStallMs: number
  /** Replaces `writeStallMs` while all connections are busy and new ones are dropped. */
  fullWriteStallMs: number
  checkEveryMs: number
}

export const HTTP_TIMEOUTS: HttpTimeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  anonymousBodyMs: 5_000,
  // The kernel buffers up to 4 MB and reports progress in steps of a third, so a slow client seems to pause.
  writeStallMs: 60_000,
  fullWriteStallMs: 5_000,
  checkEveryMs: 1_000,
}
const KEEP_ALIVE_MS = 72_000

/**
 * Creates an HTTP server, for every port of the service. Connections get their responses in order, can't
 * crash the process whatever they send, and are limited in number and in unread output.
 */
export function createHttpServer(
  serve: RequestListener,
  connections: OpenConnections,
  given: Partial<HttpTimeouts> = {},
  callerOf: CallerOf = ({ socket }) => socket.remoteAddress ?? '',
): Server {
  const timeouts = { ...HTTP_TIMEOUTS, ...given }
  const gate = new ConnectionGate(serve, connections, callerOf)
  const server = createServer(
    {
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Node would respond with an empty body and keep serving the connection.
      requireHostHeader: false,
      IncomingMessage: requestClass((socket) => gate.ignores(socket)),
    } satisfies ServerOptions,
    gate.admit,
  )
  server.on('connection', connections.add)
  server.on('checkExpectation', gate.admit)
  server.on('clientError', gate.refuseUnreadable)
  server.on('upgrade', gate.abandonInput)
  server.on('connect', gate.abandonInput)
  const stallCheck = setInterval(() => {
    const stallMs = connections.isFull ? timeouts.fullWriteStallMs : timeouts.writeStallMs
    gate.cutStalled({ stallMs, intervalMs: timeouts.checkEveryMs })
  }, timeouts.checkEveryMs)
  stallCheck.unref()
  server.once('close', () => clearInterval(stallCheck))
  return server
}

/**
 * A request that takes over its connection if, and only if, it is ignored. On CONNECT, Node would detach
 * the socket and leave it without an error listener, so a client that disconnects would end the process.
 * Earlier requests on the connection would lose their responses. With this class, CONNECT arrives like any
 * other request.
 *
 * A request that takes over is the last that the parser reads. Nothing else stops it within a packet.
 */
function requestClass(isIgnored: (socket: Socket) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    #isIgnored = false

    /** Node's parser sets this flag, and Node detaches the socket if it is true. */
    get upgrade(): boolean {
      return this.#isIgnored
    }

    set upgrade(isUpgrade: boolean | null) {
      // Null comes from the constructor of the base class, before this object has its field.
      if (isUpgrade !== null) this.#isIgnored = isIgnored(this.socket)
    }
  }
}
