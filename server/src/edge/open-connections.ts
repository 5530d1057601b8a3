import type { Socket } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { RepeatedWarning } from '../platform/repeated-warning.ts'

/**
 * The open connections of one port, at most `connectionsMax`. At the limit, a new connection replaces the
 * one that has been idle longest, so that a client that holds many connections can't lock others out. A
 * connection is busy from the end of a request's head until its last answer is sent. Busy connections
 * are never closed; if all are busy, the new connection is dropped.
 */
export class OpenConnections {
  /** In the order in which they became idle, the oldest first. */
  readonly #idle = new Set<Socket>()
  readonly #busy = new Set<Socket>()
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

  /** True if there is no room for a new connection, because all are busy. */
  get isFull(): boolean {
    return this.#busy.size >= this.connectionsMax
  }

  /** Idle connections that were closed for a new one. */
  get evicted(): number {
    return this.#evicted
  }

  /** New connections that were closed because all others were busy. */
  get dropped(): number {
    return this.#dropped
  }

  /** Connections with a request in progress. */
  get busy(): Iterable<Socket> {
    return this.#busy
  }

  *[Symbol.iterator](): Generator<Socket> {
    yield* this.#idle
    yield* this.#busy
  }

  /** For the server's `connection` event. */
  readonly add = (socket: Socket): void => {
    if (this.size >= this.connectionsMax && !this.#evictIdle()) {
      this.#dropped += 1
      this.#droppedWarning.warn(this.#logger, this.#limit)
      socket.destroy()
      return
    }
    this.#idle.add(socket)
    socket.once('close', () => this.#forget(socket))
  }

  markBusy(socket: Socket): void {
    if (this.#idle.delete(socket)) this.#busy.add(socket)
  }

  markIdle(socket: Socket): void {
    if (this.#busy.delete(socket)) this.#idle.add(socket)
  }

  get #limit() {
    return { port: this.#port, connectionsMax: this.connectionsMax }
  }

  #evictIdle(): boolean {
    const [oldest] = this.#idle
    if (!oldest) return false
    this.#evicted += 1
    this.#evictedWarning.warn(this.#logger, this.#limit)
    // Not left to the `close` event: more connections may arrive before it.
    this.#forget(oldest)
    oldest.destroy()
    return true
  }

  #forget(socket: Socket): void {
    this.#idle.delete(socket)
    this.#busy.delete(socket)
  }
}
