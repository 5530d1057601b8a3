import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { RepeatedWarning } from '../platform/repeated-warning.ts'

/** The answers that a connection waits for. It changes while the connection is busy. */
type InFlight = ReadonlySet<ServerResponse>
type Busy = {
  inFlight: InFlight
  /** What the client had sent when we last looked. */
  seenBytes: number
}

/**
 * The open connections of one port, at most `connectionsMax`. At the limit, a new connection replaces
 * another one, so that a client that holds many connections can't lock others out:
 *
 *   idle       between requests, or before the end of a request's head
 *   receiving  the request's body has not fully arrived, so nothing of it has been accepted
 *   serving    the request is complete, or its answer has begun; never closed for another connection
 *
 * The larger group of the first two loses a connection: the one that has been idle longest, or the oldest
 * one whose body has made no progress. So a few uploads survive a flood of idle connections, and idle
 * connections survive a flood of slow bodies. If all are serving, the new connection is dropped.
 */
export class OpenConnections {
  /** In the order in which they became idle, the oldest first. */
  readonly #idle = new Set<Socket>()
  /** Receiving and serving. */
  readonly #busy = new Map<Socket, Busy>()
  /**
   * The busy ones that began or ended a request since the last replacement. Most bodies arrive with their
   * head, so telling receiving from serving is left to the moment when it matters.
   */
  readonly #unsorted = new Set<Socket>()
  /** The oldest first; one that has made progress moves to the end. Some may be complete by now. */
  readonly #receiving = new Set<Socket>()
  readonly #port: 'api' | 'metrics'
  readonly connectionsMax: number
  readonly #logger: FastifyBaseLogger
  readonly #evictedWarning = new RepeatedWarning('connection.evicted')
  readonly #droppedWarning = new RepeatedWarning('connection.dropped')
  #evicted = 0
  #dropped = 0

  constructor({
    port,
    connectionsMax,
    logger,
  }: {
    port: 'api' | 'metrics'
    connectionsMax: number
    logger: FastifyBaseLogger
  }) {
    this.#port = port
    this.connectionsMax = connectionsMax
    this.#logger = logger
  }

  get size(): number {
    return this.#idle.size + this.#busy.size
  }

  /** True if no connection is idle and there is no room for another one. */
  get isFull(): boolean {
    return this.#busy.size >= this.connectionsMax
  }

  /** Idle or receiving connections that were closed for a new one. */
  get evicted(): number {
    return this.#evicted
  }

  /** New connections that were closed because all others were serving. */
  get dropped(): number {
    return this.#dropped
  }

  /** Connections with a request in progress. */
  get busy(): Iterable<Socket> {
    return this.#busy.keys()
  }

  *[Symbol.iterator](): Generator<Socket> {
    yield* this.#idle
    yield* this.#busy.keys()
  }

  /** For the server's `connection` event. */
  readonly add = (socket: Socket): void => {
    if (this.size >= this.connectionsMax && !this.#evict()) {
      this.#dropped += 1
      this.#droppedWarning.warn(this.#logger, this.#limit)
      socket.destroy()
      return
    }
    this.#idle.add(socket)
    socket.once('close', () => this.#forget(socket))
  }

  /** Call when a request begins, and when one ends and others of the connection are in progress. */
  markBusy(socket: Socket, inFlight: InFlight): void {
    if (!this.#idle.delete(socket) && !this.#busy.has(socket)) return
    this.#busy.set(socket, { inFlight, seenBytes: socket.bytesRead })
    this.#receiving.delete(socket)
    this.#unsorted.add(socket)
  }

  markIdle(socket: Socket): void {
    if (!this.#busy.has(socket)) return
    this.#forget(socket)
    this.#idle.add(socket)
  }

  get #limit() {
    return { port: this.#port, connectionsMax: this.connectionsMax }
  }

  #evict(): boolean {
    this.#sort()
    const isMostlyBodies = this.#receiving.size > this.#idle.size
    const [longestIdle] = this.#idle
    const evicted = (isMostlyBodies ? this.#findStalled() : null) ?? longestIdle
    if (!evicted) return false
    this.#evicted += 1
    this.#evictedWarning.warn(this.#logger, this.#limit)
    // Not left to the `close` event: more connections may arrive before it.
    this.#forget(evicted)
    evicted.destroy()
    return true
  }

  /** Looks at each request at most once, however often connections are replaced. */
  #sort(): void {
    for (const socket of this.#unsorted) {
      if (isReceiving(this.#busy.get(socket))) this.#receiving.add(socket)
    }
    this.#unsorted.clear()
  }

  /**
   * The first connection whose body has not made progress since we last looked. The loop meets those that
   * have made progress a second time, so it always finds one if any is receiving.
   */
  #findStalled(): Socket | null {
    for (const socket of this.#receiving) {
      const busy = this.#busy.get(socket)
      const { bytesRead } = socket
      if (busy?.seenBytes === bytesRead && isReceiving(busy)) return socket
      this.#receiving.delete(socket)
      if (!busy || !isReceiving(busy)) continue
      busy.seenBytes = bytesRead
      this.#receiving.add(socket)
    }
    return null
  }

  #forget(socket: Socket): void {
    this.#idle.delete(socket)
    this.#busy.delete(socket)
    this.#unsorted.delete(socket)
    this.#receiving.delete(socket)
  }
}

function isReceiving(busy: Busy | undefined): boolean {
  if (busy?.inFlight.size !== 1) return false
  const [response] = busy.inFlight
  return response !== undefined && !response.req.complete && !response.headersSent
}
