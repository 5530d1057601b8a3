import {
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import { ApiError } from '../errors.ts'
import { areChunksTooSmall } from './chunk-limit.ts'
import { errorBody } from './error-handler.ts'
import type { OpenConnections } from './open-connections.ts'
import { parserFault, protocolFault } from './protocol-fault.ts'
import { newTraceId, traceIdOf } from './trace.ts'
import { WriteStall } from './write-stall.ts'

/** How many requests per connection can be in progress at once. Few clients send more than one. */
export const REQUESTS_IN_FLIGHT_MAX = 100
/** Pipelined requests of one connection that are served before other connections get their turn. */
const REQUESTS_PER_TURN_MAX = 4
/** While more output waits for the client, the connection's next request waits too. */
const OUTPUT_BYTES_MAX = 1_024 * 1_024
/** Long enough to read an answer; then a client that does not hang up is disconnected. */
const LINGER_MS = 1_000

/**
 *   open ──a request that ends the connection──▶ last ──its answer──▶ closed by Node
 *   open, last ──what cannot be served──▶ refused ──the answers before, then the refusal──▶ closed
 *   open, last ──tiny chunks after an early answer──▶ refused ──▶ closed
 *
 * After `open` no further request is served, because its response could not be sent.
 */
type Connection = {
  readonly socket: Socket
  state: 'open' | 'last' | 'refused'
  /** The answers that are not sent yet, in order. */
  readonly inFlight: Set<ServerResponse>
  /** The newest of them, which no route has seen yet. */
  readonly queue: Exchange[]
  isScheduled: boolean
  newest: Exchange | null
  /** The answer before the newest one. */
  previous: ServerResponse | null
  readonly writeStall: WriteStall
}

type Exchange = { request: IncomingMessage; response: ServerResponse }

/**
 * Stands between Node's parser and the routes. What cannot be served is refused by a hand-written
 * answer that waits for the answers before it, and ends the connection. A connection holds a bounded
 * number of requests and a bounded amount of output, and nothing of what follows a refusal.
 *
 * The parser delivers all pipelined requests of a packet in one go. The first is served at once, the
 * others a few per turn of the event loop, so that one connection cannot keep the others waiting.
 */
export class ConnectionGate {
  readonly #serve: RequestListener
  readonly #open: OpenConnections
  readonly #connections = new WeakMap<Socket, Connection>()

  constructor(serve: RequestListener, open: OpenConnections) {
    this.#serve = serve
    this.#open = open
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
    connection.inFlight.add(response)
    this.#open.markBusy(socket)
    response.once('close', () => this.#finish(connection, response))
    if (!response.shouldKeepAlive) connection.state = 'last'
    if (request.headers['transfer-encoding'] !== undefined) {
      // Before Node's own listener, which would drop the rest of the body uncounted.
      response.prependOnceListener('finish', () => limitRest(request, connection))
    }
    if (connection.inFlight.size === 1) {
      this.#serve(request, response)
      return
    }
    connection.queue.push({ request, response })
    this.#schedule(connection)
  }

  /** Call every `intervalMs`: disconnects clients that have read nothing of an answer for `stallMs`. */
  cutStalled({ stallMs, intervalMs }: { stallMs: number; intervalMs: number }): void {
    for (const socket of this.#open.busy) {
      const { inFlight, writeStall } = this.#connectionOf(socket)
      const [sending] = inFlight
      if (!sending) continue
      // A reset also frees what the kernel holds for the client.
      if (writeStall.check(socket, sending, intervalMs) >= stallMs) socket.resetAndDestroy()
    }
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
      socket,
      state: 'open',
      inFlight: new Set(),
      queue: [],
      isScheduled: false,
      newest: null,
      previous: null,
      writeStall: new WriteStall(),
    }
    this.#connections.set(socket, connection)
    return connection
  }

  #schedule(connection: Connection): void {
    if (connection.isScheduled) return
    connection.isScheduled = true
    setImmediate(() => {
      connection.isScheduled = false
      this.#serveQueued(connection)
    })
  }

  #serveQueued(connection: Connection): void {
    const { queue, socket } = connection
    // The answers could not be sent.
    if (!socket.writable) queue.length = 0
    for (let served = 0; served < REQUESTS_PER_TURN_MAX; served += 1) {
      // Goes on when the client has read an answer.
      if (outputBytes(connection) > OUTPUT_BYTES_MAX) return
      const next = queue.shift()
      if (!next) return
      this.#serve(next.request, next.response)
    }
    if (queue.length > 0) this.#schedule(connection)
  }

  #finish(connection: Connection, response: ServerResponse): void {
    connection.inFlight.delete(response)
    if (connection.queue.length > 0) this.#schedule(connection)
    if (connection.inFlight.size > 0) return
    this.#open.markIdle(connection.socket)
    // An idle connection keeps nothing of its last request.
    if (!connection.newest?.request.complete) return
    connection.newest = null
    connection.previous = null
  }
}

/** What waits in this process for the client to read. */
function outputBytes({ inFlight }: Connection): number {
  let bytes = 0
  for (const response of inFlight) bytes += response.writableLength
  return bytes
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
  if (inFlight.size < REQUESTS_IN_FLIGHT_MAX) return null
  return new ApiError('rate_limited', {
    message: `A connection can have at most ${REQUESTS_IN_FLIGHT_MAX} requests in progress. Read the responses before sending more.`,
  })
}

/**
 * What follows of a body whose request was answered is parsed and dropped, so that the connection
 * stays usable. If it arrives in too small chunks, the connection ends.
 */
function limitRest(request: IncomingMessage, connection: Connection): void {
  if (request.complete || connection.state === 'refused') return
  const { socket } = request
  let chunks = 0
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    chunks += 1
    bytes += chunk.length
    if (connection.state === 'refused' || !areChunksTooSmall(chunks, bytes)) return
    connection.state = 'refused'
    discardInput(socket)
    end(socket)
  })
  // Tells Node that the body has a reader, or it would remove the listener.
  request.read(0)
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
