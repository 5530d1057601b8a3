import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'

export type RawAnswer = { status: number; headers: Map<string, string>; body: string }

/** A connection on which a test writes any bytes it likes, and reads the answers as they come. */
export class RawConnection implements AsyncDisposable {
  readonly #socket: Socket
  readonly #ended: Promise<void>
  #received: Buffer = Buffer.alloc(0)
  #wake: () => void = () => {}
  #isEnded = false

  constructor(url: string) {
    const { hostname, port } = new URL(url)
    this.#socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
    this.#socket.on('data', (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes])
      this.#wake()
    })
    // A server that hangs up while we still write is what many of these tests are about.
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

  send(bytes: string | Buffer): this {
    this.#socket.write(bytes)
    return this
  }

  /** Takes nothing more from the server, whose buffers fill up, until `resume`. */
  pause(): this {
    this.#socket.pause()
    return this
  }

  resume(): this {
    this.#socket.resume()
    return this
  }

  /** The client's half is over; the server may still answer. */
  finish(): this {
    this.#socket.end()
    return this
  }

  /** True when the server is gone for good, not only done with answering. */
  get isCut(): boolean {
    return this.#socket.destroyed
  }

  /** The next answer; fails when the server closes before it is whole. */
  async answer(): Promise<RawAnswer> {
    for (;;) {
      const next = takeAnswer(this.#received)
      if (next) {
        this.#received = next.rest
        return next.answer
      }
      assert(!this.#isEnded, `closed after: ${JSON.stringify(this.#received.toString('latin1'))}`)
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Waits until the server closes; what it sent after the last answer. */
  async closed(): Promise<string> {
    await this.#ended
    return this.#received.toString('latin1')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy()
  }
}

/** One request on a connection of its own, and its answer. */
export async function sendRaw(url: string, bytes: string | Buffer): Promise<RawAnswer> {
  await using connection = new RawConnection(url)
  return await connection.send(bytes).answer()
}

function takeAnswer(bytes: Buffer): { answer: RawAnswer; rest: Buffer } | null {
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
  const bodyStart = headEnd + 4
  const bodyEnd = bodyStart + Number(headers.get('content-length') ?? 0)
  if (bytes.length < bodyEnd) return null
  const body = bytes.subarray(bodyStart, bodyEnd).toString('utf8')
  return { answer: { status, headers, body }, rest: bytes.subarray(bodyEnd) }
}
