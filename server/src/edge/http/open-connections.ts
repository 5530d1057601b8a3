import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import { RepeatedWarning } from '../../platform/repeated-warning.ts'
import { isDelayed } from './throttle/response-throttle.ts'
import { isWaitingForReader } from './write-stall.ts'

/** The pending responses of a connection. Changes while the connection is busy. */
type InFlight = ReadonlySet<ServerResponse>
type Busy = {
  inFlight: InFlight
  /** How much the client had sent when we last checked. */
  seenBytes: number
}

/** How many serving connections are checked to find one to replace. Keeps the cost constant. */
const CHECKS_MAX = 100

/**
 * The open connections of one port, at most `connectionsMax`. At the limit, a new connection replaces
 * another one, so that a client that holds many connections can't lock others out:
 *
 *   idle       between requests, or before the end of a request's head
 *   receiving  the request's body has not fully arrived, so nothing of it has been accepted
 *   waiting    the response has begun, and the rest of it waits until the client reads; or it waits because
 *              its caller gets too many responses (`ResponseThrottle`)
 *   serving    all others, and downloads and live streams; never closed for another connection. `CompanyShares`
 *              limits how many of these one company has
 *
 * The largest of the first three groups loses a connection: the one that has been idle or waiting longest,
 * or the oldest one whose body has made no progress. So a few uploads and large responses survive a flood of
 * idle connections, and idle connections survive a flood of slow bodies, slow readers or delayed responses.
 * If all are serving, the new connection is dropped.
 *
 * Waiting includes responses to POST and requests pipelined behind the response. They could be used to hold
 * connections too, and their clients retry as after any broken connection.
 */
export class OpenConnections {
  /** In the order in which they became idle, oldest first. */
  readonly #idle = new Set<Socket>()
  /** Receiving, waiting and serving. */
  readonly #busy = new Map<Socket, Busy>()
  /**
   * Busy connections that were serving at the last check, or haven't been checked. Most bodies arrive with
   * their head and most responses fit into the kernel's buffer, so connections are checked only at the limit.
   */
  readonly #serving = new Set<Socket>()
  /** Oldest first. A connection that has made progress moves to the end. Some may be complete by now. */
  readonly #receiving = new Set<Socket>()
  /** In the order in which we found them waiting. Some may be sent by now. */
  readonly #waiting = new Set<Socket>()
  readonly #port: 'api' | 'metrics' | 'witness'
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
    port: 'api' | 'metrics' | 'witness'
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

  /** True if no connection is idle and the limit is reached. */
  get isFull(): boolean {
    return this.#busy.size >= this.connectionsMax
  }

  /** Idle, receiving or waiting connections that were closed for a new one. */
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
    // A waiting connection keeps its position when it sends further requests.
    if (this.#waiting.has(socket)) return
    this.#receiving.delete(socket)
    this.#serving.add(socket)
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
    this.#checkServing()
    // The first search moves connections to their current group, which it may already have searched. The
    // second search finds those.
    const evicted = this.#findEvictable() ?? this.#findEvictable()
    if (!evicted) return false
    this.#evicted += 1
    this.#evictedWarning.warn(this.#logger, this.#limit)
    const isWaiting = this.#waiting.has(evicted)
    // Don't leave this to the `close` event: more connections may arrive before it.
    this.#forget(evicted)
    // A reset also frees the data that the kernel buffers for a slow client.
    if (isWaiting) evicted.resetAndDestroy()
    else evicted.destroy()
    return true
  }

  /** Round-robin: each checked connection moves to the end, or to its group. */
  #checkServing(): void {
    let checksLeft = Math.min(CHECKS_MAX, this.#serving.size)
    for (const socket of this.#serving) {
      if (checksLeft === 0) return
      checksLeft -= 1
      this.#sort(socket)
    }
  }

  #sort(socket: Socket): void {
    const busy = this.#busy.get(socket)
    for (const group of [this.#serving, this.#receiving, this.#waiting]) group.delete(socket)
    if (!busy) return
    if (isReceiving(busy)) this.#receiving.add(socket)
    else if (isWaiting(busy)) this.#waiting.add(socket)
    else this.#serving.add(socket)
  }

  /** Picks from the largest group that has one. */
  #findEvictable(): Socket | undefined {
    const groups = [
      { size: this.#idle.size, find: () => this.#idle.values().next().value },
      { size: this.#receiving.size, find: () => this.#findStalled() },
      { size: this.#waiting.size, find: () => this.#findWaiting() },
    ]
    for (const { find } of groups.toSorted((one, other) => other.size - one.size)) {
      const found = find()
      if (found) return found
    }
    return undefined
  }

  /**
   * Returns the first connection whose body has made no progress since the last check. Connections with
   * progress move to the end and are visited again, so this finds one whenever any is receiving.
   */
  #findStalled(): Socket | undefined {
    for (const socket of this.#receiving) {
      const busy = this.#busy.get(socket)
      const { bytesRead } = socket
      if (busy?.seenBytes === bytesRead && isReceiving(busy)) return socket
      if (busy) busy.seenBytes = bytesRead
      this.#sort(socket)
    }
    return undefined
  }

  #findWaiting(): Socket | undefined {
    for (const socket of this.#waiting) {
      const busy = this.#busy.get(socket)
      if (busy && isWaiting(busy)) return socket
      this.#sort(socket)
    }
    return undefined
  }

  #forget(socket: Socket): void {
    this.#idle.delete(socket)
    this.#busy.delete(socket)
    this.#serving.delete(socket)
    this.#receiving.delete(socket)
    this.#waiting.delete(socket)
  }
}

function isReceiving({ inFlight }: Busy): boolean {
  if (inFlight.size !== 1) return false
  const [response] = inFlight
  return response !== undefined && !response.req.complete && !response.headersSent
}

function isWaiting({ inFlight }: Busy): boolean {
  const [response] = inFlight
  if (!response) return false
  return isDelayed(response) || (response.headersSent && isWaitingForReader(response))
}
