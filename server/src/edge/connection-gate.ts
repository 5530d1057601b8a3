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

/** How many requests per connection can be in progress at once. Few clients send more than one. */
export const REQUESTS_IN_FLIGHT_MAX = 100
/** Long enough for the client to read the response. Then the server closes the connection. */
const LINGER_MS = 1_000

/**
 *   open ──request that ends the connection──▶ last ──its response──▶ closed by Node
 *   open, last ──invalid request──▶ refused ──earlier responses, then the refusal──▶ closed
 *
 * After `open` no further request is served, because its response could not be sent.
 */
type Connection = {
  state: 'open' | 'last' | 'refused'
  inFlight: number
  newest: { request: IncomingMessage; response: ServerResponse } | null
  /** The response before the newest one. */
  previous: ServerResponse | null
  readonly onAnswered: () => void
}

/**
 * Sits between Node's parser and the routes. It refuses requests that can't be served with a
 * hand-written response, which waits for the responses before it and ends the connection. It limits
 * the number of requests per connection, and drops everything that follows a refusal.
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

  /** For `clientError`: the parser failed, or the request did not arrive in time. */
  readonly refuseUnreadable = (error: Error, socket: Socket): void => {
    // The client disconnected, or the server closed the connection.
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
      // If the caller got a response before its body ended, don't send a second one.
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
        // Don't retain the last request on an idle connection.
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
    message: `A connection can have at most ${REQUESTS_IN_FLIGHT_MAX} requests in progress. Read the responses before sending more.`,
  })
}

function whenAnswered(response: ServerResponse | null, then: () => void): void {
  if (response === null || response.writableFinished) then()
  else response.once('close', then)
}

/**
 * Reads and drops further input without parsing it. Closing with unread input would reset the
 * connection, and a reset can destroy responses that the client has not read yet.
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
    // CONNECT has no path, so there are no allowed methods to list.
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
