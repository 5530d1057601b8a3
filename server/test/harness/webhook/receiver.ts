import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { eventually } from '../timing/eventually.ts'

export type ReceivedRequest = {
  method: string
  path: string
  /** Names are in lower case. The last value of a repeated header counts. */
  headers: Record<string, string>
  body: Buffer
  /** Everything up to the empty line, as received. */
  head: string
  receivedAtMs: number
  /** The number of the connection, starting at 1. */
  connection: number
}

/** A well-formed response; by default 200 and `ok`. */
export type ReceiverResponse = {
  status?: number
  headers?: Record<string, string>
  body?: string | Buffer
  /** Sends chunks, without a length. */
  isChunked?: boolean
  afterMs?: number
}
/** Writes anything or nothing. Afterwards the connection accepts the next request. */
export type Misbehavior = { misbehave: (socket: Socket) => unknown }
export type Reply = ReceiverResponse | Misbehavior
export type Script = Reply | ((request: ReceivedRequest) => Reply | Promise<Reply>)

const PIECE = Buffer.alloc(64 * 1_024, 'x')
const REQUEST_BYTES_MAX = 8 * 1_024 * 1_024

/** Reads the request and never responds. */
export const hang: Misbehavior = { misbehave: () => {} }
/** Closes the connection instead of responding. */
export const reset: Misbehavior = { misbehave: (socket) => socket.destroy() }
/** Sends these bytes, and keeps the connection open. */
export const raw = (text: string): Misbehavior => ({ misbehave: (socket) => socket.write(text) })
/** Sends these bytes, then closes the connection. */
export const sendRawThenClose = (text: string): Misbehavior => ({
  misbehave: (socket) => socket.end(text),
})
export const malformed = raw('HTTP/1.1 banana\r\n\r\n')
export const longerThanSent = sendRawThenClose('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nshort')
export const shorterThanSent = raw('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more')
export const hangUpInBody = (status = 200): Misbehavior =>
  sendRawThenClose(`HTTP/1.1 ${status} X\r\ntransfer-encoding: chunked\r\n\r\n64\r\nhalf`)
export const redirectTo = (location: string, status = 302): ReceiverResponse => ({
  status,
  headers: { location },
})

/**
 * Sends an endless body, one byte at a time. If `before` is empty, even the header arrives like
 * this.
 */
export const drip = ({
  everyMs = 1_000,
  before = 'HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n',
} = {}): Misbehavior => ({
  misbehave: (socket) => {
    socket.write(before)
    const timer = setInterval(() => socket.write('x'), everyMs)
    socket.once('close', () => clearInterval(timer))
  },
})

/** Sends the first text, then the piece repeatedly, as fast as the sender reads. */
export const flood = (first: string, piece: string): Misbehavior => ({
  misbehave: async (socket) => {
    socket.write(first)
    const bytes = Buffer.from(piece.repeat(Math.ceil(PIECE.length / piece.length)))
    while (!socket.destroyed) await writeAll(socket, bytes)
  },
})

/**
 * Resolves when the bytes are written or the connection is closed, after other connections had a
 * turn.
 */
async function writeAll(socket: Socket, bytes: Buffer): Promise<void> {
  await new Promise((resolve) => socket.write(bytes, resolve))
  await new Promise((resolve) => setImmediate(resolve))
}

/** Sends a body of this size, as fast as the sender reads. */
export const large = (bodyBytes: number, status = 200): Misbehavior => ({
  misbehave: async (socket) => {
    const length = Number.isFinite(bodyBytes) ? `content-length: ${bodyBytes}\r\n` : ''
    socket.write(`HTTP/1.1 ${status} X\r\n${length}\r\n`)
    for (let leftBytes = bodyBytes; leftBytes > 0 && !socket.destroyed; leftBytes -= PIECE.length) {
      await writeAll(socket, PIECE.subarray(0, leftBytes))
    }
  },
})
export const endless = (status = 200): Misbehavior => large(Infinity, status)

export type ReceiverOptions = {
  /** With a key and a certificate, the receiver uses TLS. */
  tls?: TlsOptions
  /** The host name in `url`, for a certificate that needs one. The receiver listens on 127.0.0.1. */
  host?: string
  /** Later ones are counted but not kept. */
  requestsKeptMax?: number
}

/**
 * A scripted webhook receiver on loopback. It writes HTTP by hand, because most of its behavior is
 * what an HTTP server avoids.
 */
export async function startReceiver(
  script: Script = {},
  options: ReceiverOptions = {},
): Promise<Receiver> {
  const receiver = new Receiver(script, options)
  await receiver.listen()
  return receiver
}

export class Receiver implements AsyncDisposable {
  readonly requests: ReceivedRequest[] = []
  /** All requests so far, including those that are not kept. */
  requestCount = 0
  /** All connections so far. */
  connectionCount = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #scheme: 'http' | 'https'
  readonly #host: string
  readonly #requestsKeptMax: number
  #script: Script

  constructor(
    script: Script,
    { tls, host = '127.0.0.1', requestsKeptMax = 10_000 }: ReceiverOptions,
  ) {
    this.#script = script
    this.#scheme = tls ? 'https' : 'http'
    this.#host = host
    this.#requestsKeptMax = requestsKeptMax
    const serve = (socket: Socket) => void this.#serve(socket)
    this.#server = tls ? createTlsServer(tls, serve) : createServer(serve)
    // Below TLS, so that a client that disconnects during the handshake is counted and closed too.
    this.#server.on('connection', (socket: Socket) => {
      this.connectionCount += 1
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get url(): string {
    const address = this.#server.address()
    assert(typeof address === 'object' && address !== null, 'the receiver listens')
    return `${this.#scheme}://${this.#host}:${address.port}/hook`
  }

  get openConnectionCount(): number {
    return this.#sockets.size
  }

  /** Takes effect with the next request. */
  respondWith(script: Script): void {
    this.#script = script
  }

  /** The kept requests, once this many have arrived in total. */
  async waitFor(count: number, limits?: { timeoutMs?: number }): Promise<ReceivedRequest[]> {
    return await eventually(() => {
      assert(this.requestCount >= count, `${this.requestCount} of ${count} requests arrived`)
      return this.requests
    }, limits)
  }

  /** Closes all open connections, like a receiver that restarts. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async #serve(socket: Socket): Promise<void> {
    const connection = this.connectionCount
    // Ignore errors: in many of these tests the sender disconnects.
    socket.on('error', () => {})
    socket.setNoDelay(true)
    let received = Buffer.alloc(0)
    try {
      for await (const bytes of socket) {
        received = Buffer.concat([received, bytes])
        assert(received.length <= REQUEST_BYTES_MAX, 'the request is too large for a test')
        for (let next = takeRequest(received); next; next = takeRequest(received)) {
          received = next.rest
          await this.#reply(socket, { ...next.request, connection })
        }
      }
    } catch {
      socket.destroy()
    }
  }

  async #reply(socket: Socket, request: ReceivedRequest): Promise<void> {
    this.requestCount += 1
    if (this.requests.length < this.#requestsKeptMax) this.requests.push(request)
    const script = this.#script
    const reply = typeof script === 'function' ? await script(request) : script
    if ('misbehave' in reply) {
      await reply.misbehave(socket)
      return
    }
    // The delay doesn't keep the process alive, so nothing waits for it after the test.
    if (reply.afterMs !== undefined) await delay(reply.afterMs, undefined, { ref: false })
    if (!socket.destroyed) socket.write(formatResponse(reply))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.cutAll()
    await closed
  }
}

type ParsedRequest = Omit<ReceivedRequest, 'connection'>

function takeRequest(
  received: Buffer,
): { request: ParsedRequest; rest: Buffer<ArrayBuffer> } | null {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd === -1) return null
  const head = received.subarray(0, headEnd).toString('latin1')
  const [requestLine = '', ...lines] = head.split('\r\n')
  const [method = '', path = ''] = requestLine.split(' ')
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  assert(!('transfer-encoding' in headers), 'our requests have a content-length')
  const bodyEnd = headEnd + 4 + Number(headers['content-length'] ?? 0)
  if (received.length < bodyEnd) return null
  const body = Buffer.from(received.subarray(headEnd + 4, bodyEnd))
  const request = { method, path, headers, body, head, receivedAtMs: Date.now() }
  return { request, rest: Buffer.from(received.subarray(bodyEnd)) }
}

function formatResponse({
  status = 200,
  headers = {},
  body = 'ok',
  isChunked,
}: ReceiverResponse): Buffer {
  const isEmpty = status === 204 || status === 304
  const bytes = isEmpty ? Buffer.alloc(0) : Buffer.from(body)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  if (isChunked) lines.push('transfer-encoding: chunked')
  else if (!isEmpty) lines.push(`content-length: ${bytes.length}`)
  const head = Buffer.from([`HTTP/1.1 ${status} X`, ...lines, '', ''].join('\r\n'), 'latin1')
  return Buffer.concat([head, isChunked ? inChunks(bytes) : bytes])
}

function inChunks(bytes: Buffer): Buffer {
  const middle = Math.ceil(bytes.length / 2)
  const pieces = [bytes.subarray(0, middle), bytes.subarray(middle)].filter(({ length }) => length)
  const chunks = pieces.flatMap((piece) => [
    Buffer.from(`${piece.length.toString(16)}\r\n`),
    piece,
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
}
