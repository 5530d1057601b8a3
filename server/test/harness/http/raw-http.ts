import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'

export type RawResponse = { status: number; headers: Map<string, string>; body: string }

export const ABORTS = ['close', 'reset', 'half-close'] as const
export type Abort = (typeof ABORTS)[number]

/** A connection on which a test writes arbitrary bytes and reads the responses as they arrive. */
export class RawConnection implements AsyncDisposable {
  readonly #socket: Socket
  readonly #ended: Promise<void>
  #received: Buffer = Buffer.alloc(0)
  #wake: () => void = () => {}
  #isEnded = false

  /** `localAddress`: the address that the server sees, for limits per address. */
  constructor(url: string, { localAddress = '127.0.0.1' }: { localAddress?: string } = {}) {
    const { hostname, port } = new URL(url)
    const to = { host: hostname, port: Number(port) }
    this.#socket = connect({ ...to, localAddress, allowHalfOpen: true })
    this.#socket.on('data', (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes])
      this.#wake()
    })
    // Ignore errors: in many of these tests the server closes the connection while we still write.
    this.#socket.on('error', () => {})
    this.#ended = new Promise((resolve) => {
      for (const event of ['end', 'close'] as const) {
        this.#socket.on(event, () => {
          this.#isEnded = true
          this.#wake()
          resolve()
        })
      }
    })
  }

  /** Bytes that are not yet sent, because the server doesn't read fast enough or at all. */
  get unsentBytes(): number {
    return this.#socket.writableLength
  }

  send(bytes: string | Buffer): this {
    this.#socket.write(bytes)
    return this
  }

  /** Reads nothing more from the server until `resume`, so its buffers fill up. */
  pause(): this {
    this.#socket.pause()
    return this
  }

  resume(): this {
    this.#socket.resume()
    return this
  }

  /** Ends the client's side; the server can still respond. */
  finish(): this {
    this.#socket.end()
    return this
  }

  /**
   * Waits until the kernel has the sent bytes, then disconnects without reading the response: with a
   * close, a reset, or a half-close followed by a reset.
   */
  async abort(how: Abort): Promise<void> {
    // Not `once`, which would reject if the server disconnects first.
    const gone = new Promise((resolve) => this.#socket.on('close', resolve))
    this.#socket.pause()
    await new Promise((resolve) => this.#socket.write('', resolve))
    if (how === 'close') this.#socket.destroy()
    else if (how === 'reset') this.#socket.resetAndDestroy()
    else this.#socket.end(() => this.#socket.resetAndDestroy())
    await gone
  }

  /** True if the server has closed both directions, not only its own. */
  get isCut(): boolean {
    return this.#socket.destroyed
  }

  /** The statuses of all responses, in order, until the server closes the connection. */
  async statuses(): Promise<number[]> {
    await this.#ended
    const statuses: number[] = []
    while (this.#received.length > 0) statuses.push((await this.response()).status)
    return statuses
  }

  /** The next response. Fails if the server closes before it is complete. */
  async response(): Promise<RawResponse> {
    for (;;) {
      const next = takeResponse(this.#received)
      if (next) {
        this.#received = next.rest
        return next.response
      }
      assert(!this.#isEnded, `closed after: ${JSON.stringify(this.#received.toString('latin1'))}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Waits until the server closes. Returns what it sent after the last response. */
  async closed(): Promise<string> {
    await this.#ended
    return this.#received.toString('latin1')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy()
  }
}

/** Sends one request on its own connection and returns the response. */
export async function sendRaw(url: string, bytes: string | Buffer): Promise<RawResponse> {
  await using connection = new RawConnection(url)
  return await connection.send(bytes).response()
}

function takeResponse(bytes: Buffer): { response: RawResponse; rest: Buffer } | null {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return null
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(`${statusLine} `)?.[1])
  assert(status >= 100, `no status line: ${statusLine}`)
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const found = takeBody(bytes.subarray(headEnd + 4), headers)
  return found && { response: { status, headers, body: found.body }, rest: found.rest }
}

function takeBody(
  bytes: Buffer,
  headers: ReadonlyMap<string, string>,
): { body: string; rest: Buffer } | null {
  if (headers.get('transfer-encoding') === 'chunked') return takeChunks(bytes)
  const length = Number(headers.get('content-length') ?? 0)
  if (bytes.length < length) return null
  return { body: bytes.subarray(0, length).toString('utf8'), rest: bytes.subarray(length) }
}

/** Without trailers. */
function takeChunks(bytes: Buffer): { body: string; rest: Buffer } | null {
  const chunks: Buffer[] = []
  for (let rest = bytes; ;) {
    const sizeEnd = rest.indexOf('\r\n')
    const size = Number.parseInt(rest.subarray(0, Math.max(0, sizeEnd)).toString('latin1'), 16)
    const end = sizeEnd + 2 + size
    if (sizeEnd === -1 || rest.length < end + 2) return null
    if (size === 0) {
      return { body: Buffer.concat(chunks).toString('utf8'), rest: rest.subarray(end + 2) }
    }
    chunks.push(rest.subarray(sizeEnd + 2, end))
    rest = rest.subarray(end + 2)
  }
}
