import {
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ApiError } from '../../errors.ts'
import { monotonicClock } from '../../platform/time/clock.ts'
import { isAuthenticated } from './authenticated-connections.ts'
import { BODY_RATE, pauseBody } from './body-budget.ts'
import { CallerDebts } from './throttle/caller-debts.ts'
import { areChunksTooSmall, REST_BYTES_MAX } from './chunk-limit.ts'
import { errorBody } from '../error-handler.ts'
import type { OpenConnections } from './open-connections.ts'
import { parserFault, protocolFault } from './protocol-fault.ts'
import { isDelayed } from './throttle/response-throttle.ts'
import { newTraceId, traceIdOf } from '../trace.ts'
import { WriteStall } from './write-stall.ts'

/** Maximum concurrent requests per connection. Few clients send more than one. */
export const REQUESTS_IN_FLIGHT_MAX = 16
/** Maximum queued pipelined requests per port, for each lane. */
const QUEUED_MAX = 1_000
/**
 * How many queued requests are served per turn of the event loop. Node accepts one connection per turn, so a client
 * that pipelines and reconnects makes new connections wait for every request that is served in between.
 */
const REQUESTS_PER_TURN = { authenticated: 16, anonymous: 2 } as const
/** While more output than this waits for the client, the connection's next request waits too. */
const OUTPUT_BYTES_MAX = 1_024 * 1_024
/** Smaller bodies arrive in a few packets, most of them with their head. */
const UNCOUNTED_BYTES_MAX = 64 * 1_024
/** Long enough to read a response. After that, a client that doesn't close the connection is disconnected. */
const LINGER_MS = 1_000

/** A queue with its own limit, so that anonymous callers don't displace those with a key or session. */
type Lane = {
  readonly requestsPerTurn: number
  queued: number
  /** Connections with queued requests that can be served, in round-robin order. */
  readonly waiting: Set<Connection>
}

/**
 *   open ──request that ends the connection──▶ last ──its response──▶ closed by Node
 *   open, last ──invalid input──▶ refused ──pending responses, then the error──▶ closed
 *   open, last ──tiny chunks, or too much data after an early response──▶ refused ──▶ closed
 *
 * After `open` no further request is served, because its response could not be sent.
 */
type Connection = {
  readonly socket: Socket
  state: 'open' | 'last' | 'refused'
  /** The responses that haven't been sent yet, in order. */
  readonly inFlight: Set<ServerResponse>
  /** The newest requests, which haven't been passed to a route yet. */
  readonly queue: Exchange[]
  /** Its limit includes the queue of this connection. */
  lane: Lane
  newest: Exchange | null
  /** The response before the newest one. */
  previous: ServerResponse | null
  readonly writeStall: WriteStall
}

/** The caller that the rest of a refused body counts toward. Its company is not known here. */
export type CallerOf = (request: IncomingMessage) => string

type Exchange = { request: IncomingMessage; response: ServerResponse }

/**
 * Sits between Node's parser and the routes. A request that can't be served gets an error written directly to
 * the socket, after the responses before it, and the connection closes. Each connection has a bounded number of
 * requests and a bounded amount of output. Input after a refusal is discarded.
 *
 * The parser delivers all pipelined requests of a packet at once: up to two thousand of the smallest. The
 * first is served immediately. The others wait in a bounded queue, and connections take turns: a few requests
 * per turn of the event loop, so that other callers don't wait, and fewer for connections without a key or
 * session. After a refusal, the parser stops at the next request (`ignores`).
 */
export class ConnectionGate {
  readonly #serve: RequestListener
  readonly #open: OpenConnections
  readonly #callerOf: CallerOf
  readonly #connections = new WeakMap<Socket, Connection>()
  readonly #authenticated = createLane(REQUESTS_PER_TURN.authenticated)
  readonly #anonymous = createLane(REQUESTS_PER_TURN.anonymous)
  /** For bodies that are dropped. */
  readonly #rests = new CallerDebts(BODY_RATE, monotonicClock)
  #isScheduled = false

  constructor(serve: RequestListener, open: OpenConnections, callerOf: CallerOf) {
    this.#serve = serve
    this.#open = open
    this.#callerOf = callerOf
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
    const fault = protocolFault(request) ?? this.#tooMany(connection)
    if (fault) {
      connection.state = 'refused'
      discardInput(socket)
      const hasBody = request.method !== 'HEAD'
      const traceId = traceIdOf(request.headers)
      afterResponse(before, () => endWithError(socket, fault, { traceId, hasBody }))
      return
    }
    // The parser drops data that arrives together with an upgrade request, so it must be the last one.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    connection.inFlight.add(response)
    this.#open.markBusy(socket, connection.inFlight)
    response.once('close', () => this.#finish(connection, response))
    if (!response.shouldKeepAlive) connection.state = 'last'
    if (canOutlastResponse(request)) {
      // Run before Node's own listener, which would drop the rest of the body without counting it.
      response.prependOnceListener('finish', () => this.#limitRest(request, connection))
    }
    if (connection.inFlight.size === 1) {
      this.#serve(request, response)
      return
    }
    connection.queue.push({ request, response })
    connection.lane.queued += 1
    this.#takeTurn(connection)
  }

  /** True if no further requests of the connection are served. Then the parser must stop at the next one. */
  ignores(socket: Socket): boolean {
    const connection = this.#connections.get(socket)
    return connection !== undefined && connection.state !== 'open'
  }

  /** For `upgrade` and `connect`: Node has released the connection at a request that is ignored. */
  readonly abandonInput = (_request: IncomingMessage, socket: Duplex): void => {
    // Node has removed its own listener, and an error without one would end the process.
    socket.on('error', () => {})
    discardInput(socket)
  }

  /** Call every `intervalMs`: disconnects clients that have read nothing of a response for `stallMs`. */
  cutStalled({ stallMs, intervalMs }: { stallMs: number; intervalMs: number }): void {
    for (const socket of this.#open.busy) {
      const { inFlight, writeStall } = this.#connectionOf(socket)
      const [sending] = inFlight
      if (!sending) continue
      // A reset also frees the data that the kernel buffers for the client.
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
    afterResponse(before, () => {
      // If the caller got a response before its body ended, don't send a second one.
      if (isBody && newest.response.headersSent)
        afterResponse(newest.response, () => endSocket(socket))
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
      lane: this.#anonymous,
      newest: null,
      previous: null,
      writeStall: new WriteStall(),
    }
    this.#connections.set(socket, connection)
    socket.once('close', () => {
      this.#dropQueue(connection)
      closeWaiting(connection)
    })
    return connection
  }

  #tooMany(connection: Connection): ApiError | null {
    const { inFlight } = connection
    if (inFlight.size >= REQUESTS_IN_FLIGHT_MAX) {
      return new ApiError('rate_limited', {
        message: `A connection can have at most ${REQUESTS_IN_FLIGHT_MAX} requests in progress. Read the responses before sending more.`,
      })
    }
    if (inFlight.size === 0) return null
    return this.#laneOf(connection).queued >= QUEUED_MAX ? new ApiError('overloaded') : null
  }

  /** Moves a connection that has been authenticated meanwhile, with its queue. */
  #laneOf(connection: Connection): Lane {
    const { lane, queue, socket } = connection
    if (lane === this.#anonymous && isAuthenticated(socket)) {
      lane.waiting.delete(connection)
      lane.queued -= queue.length
      this.#authenticated.queued += queue.length
      connection.lane = this.#authenticated
    }
    return connection.lane
  }

  #takeTurn(connection: Connection): void {
    this.#laneOf(connection).waiting.add(connection)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#serveTurn()
    })
  }

  #serveTurn(): void {
    for (const { waiting, requestsPerTurn } of [this.#authenticated, this.#anonymous]) {
      for (let served = 0; served < requestsPerTurn; served += 1) {
        const [connection] = waiting
        if (!connection) break
        waiting.delete(connection)
        this.#serveNext(connection)
      }
      if (waiting.size > 0) this.#schedule()
    }
  }

  #serveNext(connection: Connection): void {
    // The responses couldn't be sent.
    if (!connection.socket.writable) return this.#dropQueue(connection)
    // Continues when the client has read a response.
    if (outputBytes(connection) > OUTPUT_BYTES_MAX) return
    // The response would be delayed too, or the connection closed, and the client would reconnect at once.
    if (connection.lane === this.#anonymous && hasDelayed(connection)) {
      return this.#refuseQueue(connection)
    }
    const next = connection.queue.shift()
    if (!next) return
    connection.lane.queued -= 1
    if (connection.queue.length > 0) this.#takeTurn(connection)
    this.#serve(next.request, next.response)
  }

  #refuseQueue(connection: Connection): void {
    const { socket, queue, inFlight } = connection
    const [next] = queue
    if (!next) return
    const served = [...inFlight].slice(0, -queue.length)
    this.#dropQueue(connection)
    connection.state = 'refused'
    discardInput(socket)
    const traceId = traceIdOf(next.request.headers)
    const hasBody = next.request.method !== 'HEAD'
    const fault = new ApiError('overloaded')
    afterResponse(served.at(-1) ?? null, () => endWithError(socket, fault, { traceId, hasBody }))
  }

  #dropQueue(connection: Connection): void {
    const { lane, queue } = connection
    lane.queued -= queue.length
    queue.length = 0
    lane.waiting.delete(connection)
  }

  /**
   * After an early response, the rest of the body is parsed and dropped, so that the connection stays usable.
   * If it is too large or its chunks are too small, the connection closes.
   */
  #limitRest(request: IncomingMessage, connection: Connection): void {
    if (request.complete || connection.state === 'refused') return
    const { socket } = request
    const caller = this.#callerOf(request)
    let chunks = 0
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      chunks += 1
      bytes += chunk.length
      pauseBody(request, this.#rests.charge(caller, chunk.length))
      const isTooMuch = bytes > REST_BYTES_MAX || areChunksTooSmall(chunks, bytes)
      if (connection.state === 'refused' || !isTooMuch) return
      connection.state = 'refused'
      discardInput(socket)
      endSocket(socket)
    })
    // Tells Node that the body has a reader, or it would remove the listener.
    request.read(0)
    request.resume()
  }

  #finish(connection: Connection, response: ServerResponse): void {
    connection.inFlight.delete(response)
    if (connection.queue.length > 0) this.#takeTurn(connection)
    if (connection.inFlight.size > 0) {
      this.#open.markBusy(connection.socket, connection.inFlight)
      return
    }
    this.#open.markIdle(connection.socket)
    // Release the last request while the connection is idle.
    if (!connection.newest?.request.complete) return
    connection.newest = null
    connection.previous = null
  }
}

function createLane(requestsPerTurn: number): Lane {
  return { requestsPerTurn, queued: 0, waiting: new Set() }
}

/**
 * Closes the responses that wait behind another one. Newer releases of Node do this themselves. Older ones
 * leave them open, and anything that waits for a response to close would wait forever.
 */
function closeWaiting({ inFlight }: Connection): void {
  for (const response of inFlight) {
    if (response.destroyed || response.socket !== null) continue
    response.destroy()
    response.emit('close')
  }
}

function hasDelayed({ inFlight }: Connection): boolean {
  const [first] = inFlight
  return first !== undefined && isDelayed(first)
}

/** Output in this process that the client hasn't read. */
function outputBytes({ inFlight }: Connection): number {
  let bytes = 0
  for (const response of inFlight) bytes += response.writableLength
  return bytes
}

/** Whether so much of the body can arrive after the response that it must be counted. */
function canOutlastResponse({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true
  const { 'content-length': length } = headers
  return length !== undefined && Number(length) > UNCOUNTED_BYTES_MAX
}

function afterResponse(response: ServerResponse | null, then: () => void): void {
  if (response === null || response.writableFinished) then()
  else response.once('close', then)
}

/**
 * Reads and drops a bounded amount of further input without parsing it. Closing with unread input would reset
 * the connection, and a reset can destroy responses that the client has not read yet.
 */
function discardInput(socket: Duplex): void {
  let bytes = 0
  socket.removeAllListeners('data')
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > REST_BYTES_MAX) socket.pause()
  })
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
  endSocket(socket, `${head.join('\r\n')}\r\n\r\n${hasBody ? body : ''}`)
}

function endSocket(socket: Socket, lastBytes = ''): void {
  if (!socket.writable) return
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.end(lastBytes)
}
