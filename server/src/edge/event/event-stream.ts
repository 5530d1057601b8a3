import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { exemptFromWriteStall } from '../http/write-stall.ts'

const HEARTBEAT_MS = 15_000
/** The limit of unread output. Beyond it, the client misses events, and is notified when it catches up. */
const WAITING_BYTES_MAX = 2 * 1_024 * 1_024
/** A client that reads nothing for this long is disconnected. */
const STALL_MS_MAX = 30_000
const RETRY_MS = 2_000
/** Small messages are joined into writes of about this size: a write costs as much as 16 KiB of data. */
const WRITE_BYTES = 64 * 1_024
/** Larger messages are written without a copy, so that all clients share the unread bytes. */
const JOINED_BYTES_MAX = 16 * 1_024

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // A buffering proxy would delay events.
  'x-accel-buffering': 'no',
  // Close the connection when the stream ends, so that a shutdown doesn't wait for it.
  connection: 'close',
}

type StreamEvent = { id: () => string; event: string; data: string }

/** A message without its id, as bytes that several clients can share. */
type StreamFrame = { id: string; body: Buffer }

/** The data is JSON, which has no line breaks of its own. */
export function frameBody(event: string, data: string): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${data}\n\n`)
}

type StreamOwner = {
  /** Called every 15 seconds. Returns the client's current position. */
  onBeat: () => string
  /** Called when the client has caught up after missing events. */
  onMissed: () => void
  onClose: () => void
}

/**
 * Sends server-sent events to one client, until the client disconnects or the owner ends the stream.
 *
 *   open ──too much unread output──▶ full: events are dropped ──client read it all──▶ open, `onMissed`
 *   full ──nothing read for 30 s──▶ closed
 */
export class EventStream {
  readonly #response: ServerResponse
  readonly #sendHeartbeat: NodeJS.Timeout
  readonly #onMissed: () => void
  #stall: NodeJS.Timeout | null = null
  #hasMissed = false

  constructor(reply: FastifyReply, { onBeat, onMissed, onClose }: StreamOwner) {
    reply.hijack()
    this.#response = reply.raw
    exemptFromWriteStall(this.#response)
    this.#onMissed = onMissed
    for (const [name, value] of Object.entries({ ...reply.getHeaders(), ...HEADERS })) {
      if (value !== undefined) this.#response.setHeader(name, value)
    }
    this.#write(Buffer.from(`retry: ${RETRY_MS}\n\n`))
    this.#sendHeartbeat = setInterval(() => {
      this.#write(Buffer.from(`: beat\nid: ${onBeat()}\n\n`))
    }, HEARTBEAT_MS)
    this.#sendHeartbeat.unref()
    const close = () => {
      clearInterval(this.#sendHeartbeat)
      if (this.#stall) clearTimeout(this.#stall)
      onClose()
    }
    // If the client disconnected before the response began, `close` was already emitted.
    if (this.#response.destroyed) setImmediate(close)
    else this.#response.once('close', close)
    // The connection closes after an error, and no one is left to notify.
    this.#response.on('error', () => {})
  }

  /** True while too much output is unread. Messages are then dropped. */
  get isStalled(): boolean {
    return this.#stall !== null
  }

  send({ id, event, data }: StreamEvent): void {
    if (this.#stall) this.#hasMissed = true
    else this.#write(Buffer.from(`id: ${id()}\n`), frameBody(event, data))
  }

  /** Sends the frames in few writes. If the client stalls, it misses the remaining ones. */
  sendAll(frames: Iterable<StreamFrame>): void {
    let pieces: Buffer[] = []
    let bytes = 0
    for (const { id, body } of frames) {
      if (this.#stall) {
        this.#hasMissed = true
        return
      }
      pieces.push(Buffer.from(`id: ${id}\n`), body)
      bytes += id.length + body.length
      if (bytes < WRITE_BYTES && body.length <= JOINED_BYTES_MAX) continue
      this.#write(...pieces)
      pieces = []
      bytes = 0
    }
    if (pieces.length > 0) this.#write(...pieces)
  }

  /**
   * Ends the stream with a last event. If the client is behind, resets the connection and drops unread
   * events.
   */
  cut(last: StreamEvent): void {
    if (this.#response.writableLength > 0) {
      this.#response.socket?.resetAndDestroy()
      return
    }
    this.send(last)
    this.end()
  }

  end(): void {
    // A stalled client isn't going to read the rest.
    if (this.#stall) this.#response.destroy()
    else this.#response.end()
  }

  #write(...pieces: readonly Buffer[]): void {
    if (this.#stall || this.#response.writableEnded || this.#response.destroyed) return
    const last = pieces.at(-1)
    const isLarge = last !== undefined && last.length > JOINED_BYTES_MAX
    this.#response.write(Buffer.concat(isLarge ? pieces.slice(0, -1) : pieces))
    if (isLarge) this.#response.write(last)
    if (this.#response.writableLength <= WAITING_BYTES_MAX) return
    this.#stall = setTimeout(() => this.#response.destroy(), STALL_MS_MAX)
    this.#stall.unref()
    this.#response.once('drain', () => this.#resume())
  }

  #resume(): void {
    if (this.#stall) clearTimeout(this.#stall)
    this.#stall = null
    if (!this.#hasMissed) return
    this.#hasMissed = false
    this.#onMissed()
  }
}
