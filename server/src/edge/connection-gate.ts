import {
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import { ApiError } from '../errors.ts'
import { errorBody } from './error-handler.ts'
import { parserFault, protocolFault } from './protocol-fault.ts'
import { newTraceId, traceIdOf } from './trace.ts'

/** Requests of one connection that may be in progress at once. Few clients send more than one. */
export const REQUESTS_IN_FLIGHT_MAX = 100
/** Long enough to read an answer; then a client that does not hang up is disconnected. */
const LINGER_MS = 1_000

/**
 *   open ──a request that ends the connection──▶ last ──its answer──▶ closed by Node
 *   open, last ──what cannot be served──▶ refused ──the answers before, then the refusal──▶ closed
 *
 * After `open` no further request is served: its answer could not be sent.
 */
type Connection = {
  state: 'open' | 'last' | 'refused'
  inFlight: number
  newest: { request: IncomingMessage; response: ServerResponse } | null
  /** The answer before the newest one. */
  previous: ServerResponse | null
  readonly onAnswered: () => void
}

/**
 * Stands between Node's parser and the routes. What cannot be served is refused by a hand-written
 * answer that waits for the answers before it, and ends the connection. A connection holds a bounded
 * number of requests, and nothing of what follows a refusal.
 */
export class ConnectionGate {
  readonly #serve: RequestListener
  readonly #connections = new WeakMap<Socket, Connection>()

  constructor(serve: RequestListener) {
    this.#serve = serve
  }

  /** For `request` and `checkExpectation`. */
  readonly admit: RequestListener = (request, response) => {
    const { socket } = request
    const connection = this.#connectionOf(socket)
    if (connection.state !== 'open') {
      discardInput(socket)
      return
    }
    const before = connection.newest?.response ?? null
    connection.previous = before
    connection.newest = { request, response }
    const fault = protocolFault(request) ?? tooManyInFlight(connection)
    if (fault) {
      connection.state = 'refused'
      discardInput(socket)
      const hasBody = request.method !== 'HEAD'
      const traceId = traceIdOf(request.headers)
      whenAnswered(before, () => endWithError(socket, fault, { traceId, hasBody }))
      return
    }
    if (isBareUpgrade(request)) response.shouldKeepAlive = false
    connection.inFlight += 1
    response.once('close', connection.onAnswered)
    if (!response.shouldKeepAlive) connection.state = 'last'
    this.#serve(request, response)
  }

  /** For `clientError`: the parser gave up, or the request did not arrive in time. */
  readonly refuseUnreadable = (error: Error, socket: Socket): void => {
    // Broken by the client, or closed by us.
    if (!socket.writable) return
    const connection = this.#connectionOf(socket)
    if (connection.state === 'refused') return
    const { newest, previous, state } = connection
    const isBody = newest !== null && !newest.request.complete
    discardInput(socket)
    if (state === 'last' && !isBody) return
    connection.state = 'refused'
    const before = isBody ? previous : (newest?.response ?? null)
    whenAnswered(before, () => {
      // A caller that was answered before its body ended has its answer, and gets no second one.
      if (isBody && newest.response.headersSent) whenAnswered(newest.response, () => end(socket))
      else endWithError(socket, parserFault(error), { traceId: newTraceId(), hasBody: true })
    })
  }

  #connectionOf(socket: Socket): Connection {
    const known = this.#connections.get(socket)
    if (known) return known
    const connection: Connection = {
      state: 'open',
      inFlight: 0,
      newest: null,
      previous: null,
      onAnswered: () => {
        connection.inFlight -= 1
        // An idle connection keeps nothing of its last request.
        if (connection.inFlight > 0 || !connection.newest?.request.complete) return
        connection.newest = null
        connection.previous = null
      },
    }
    this.#connections.set(socket, connection)
    return connection
  }
}

/**
 * Whether the parser drops what arrives in one piece with the request: it takes that for another
 * protocol, unless the request has a body. Nothing may follow such a request.
 */
function isBareUpgrade({ headers }: IncomingMessage): boolean {
  if (headers.upgrade === undefined) return false
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  return Number(length) === 0 && encoding === undefined
}

function tooManyInFlight({ inFlight }: Connection): ApiError | null {
  if (inFlight < REQUESTS_IN_FLIGHT_MAX) return null
  return new ApiError('rate_limited', {
    message: `A connection can have ${REQUESTS_IN_FLIGHT_MAX} requests in progress. Read the answers before sending more.`,
  })
}

function whenAnswered(response: ServerResponse | null, then: () => void): void {
  if (response === null || response.writableFinished) then()
  else response.once('close', then)
}

/**
 * What still arrives is read and dropped, not parsed. Closing with unread input would reset the
 * connection, and a reset can destroy answers that the client has not read yet.
 */
function discardInput(socket: Socket): void {
  socket.removeAllListeners('data')
  socket.on('data', () => {})
  socket.resume()
}

function endWithError(
  socket: Socket,
  error: ApiError,
  { traceId, hasBody }: { traceId: string; hasBody: boolean },
): void {
  const body = JSON.stringify(errorBody(error, traceId))
  const head = [
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-trace-id: ${traceId}`,
    // No path was asked for, so there is no method to name.
    ...(error.status === 405 ? ['allow:'] : []),
    ...(error.retryAfterSeconds === undefined ? [] : [`retry-after: ${error.retryAfterSeconds}`]),
    'connection: close',
  ]
  end(socket, `${head.join('\r\n')}\r\n\r\n${hasBody ? body : ''}`)
}

function end(socket: Socket, lastBytes = ''): void {
  if (!socket.writable) return
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.end(lastBytes)
}
