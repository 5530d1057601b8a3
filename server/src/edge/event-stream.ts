import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { exemptFromWriteStall } from './write-stall.ts'

const BEAT_MS = 15_000
/** More is not kept for a client that takes too little: it misses what comes, and is told so. */
const WAITING_BYTES_MAX = 2 * 1_024 * 1_024
/** A client that takes nothing for so long is gone. */
const STALL_MS_MAX = 30_000
const RETRY_MS = 2_000
/** Small messages are joined into writes of about this size: each write costs as much as 16 KiB more. */
const WRITE_BYTES = 64 * 1_024
/** Larger messages are written as they are, so that all clients share the bytes that wait for them. */
const JOINED_BYTES_MAX = 16 * 1_024

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // A proxy that collects would hold events back.
  'x-accel-buffering': 'no',
  // When the stream ends, so does the connection: stopping waits for nobody.
  connection: 'close',
}

export type StreamEvent = { id: () => string; event: string; data: string }

/** A message without its id, as bytes that several clients can share. */
export type StreamFrame = { id: string; body: Buffer }

/** The data is JSON, which has no line breaks of its own. */
export function frameBody(event: string, data: string): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${data}\n\n`)
}

type StreamOwner = {
  /** Asked every 15 seconds where the client stands. */
  onBeat: () => string
  /** The client takes again, and has missed something. */
  onMissed: () => void
  onClose: () => void
}

/**
 * Server-sent events to one client, ended by whoever owns it.
 *
 *   open ──too much waits──▶ full: events are left out ──the client took all──▶ open, `onMissed`
 *   full ──nothing is taken for 30 s──▶ closed
 */
export class EventStream {
  readonly #response: ServerResponse
  readonly #beat: NodeJS.Timeout
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
    this.#beat = setInterval(() => {
      this.#write(Buffer.from(`: beat\nid: ${onBeat()}\n\n`))
    }, BEAT_MS)
    this.#beat.unref()
    const close = () => {
      clearInterval(this.#beat)
      if (this.#stall) clearTimeout(this.#stall)
      onClose()
    }
    // Who left before the answer began is not heard leaving.
    if (this.#response.destroyed) setImmediate(close)
    else this.#response.once('close', close)
    // A broken connection closes; there is nobody to tell.
    this.#response.on('error', () => {})
  }

  /** True while too much waits for the client: messages are left out. */
  get isStalled(): boolean {
    return this.#stall !== null
  }

  send({ id, event, data }: StreamEvent): void {
    if (this.#stall) this.#hasMissed = true
    else this.#write(Buffer.from(`id: ${id()}\n`), frameBody(event, data))
  }

  /** Sends the frames in few writes. The client misses those that come after it stalls. */
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

  /** Ends the stream with a last event. If the client is behind, resets it and drops unread events. */
  cut(last: StreamEvent): void {
    if (this.#response.writableLength > 0) {
      this.#response.socket?.resetAndDestroy()
      return
    }
    this.send(last)
    this.end()
  }

  end(): void {
    // What a full client has not taken, it never will.
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
    this.#response.once('drain', () => this.#takesAgain())
  }

  #takesAgain(): void {
    if (this.#stall) clearTimeout(this.#stall)
    this.#stall = null
    if (!this.#hasMissed) return
    this.#hasMissed = false
    this.#onMissed()
  }
}
