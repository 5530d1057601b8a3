import { connect, type Socket } from 'node:net'

/** Sends requests, and reads the responses only when the test says so. */
export class SlowReader implements AsyncDisposable {
  readonly #socket: Socket
  readonly #closed: Promise<void>
  /** Resolves when the first response has started, or the server has closed the connection. */
  readonly begun: Promise<void>
  #bytes = 0
  #pauseAtBytes = 0

  /** `localAddress`: the address that the server sees, for limits per address. */
  constructor(
    url: string,
    requests: string,
    { localAddress = '127.0.0.1' }: { localAddress?: string } = {},
  ) {
    const port = Number(new URL(url).port)
    this.#socket = connect({ host: '127.0.0.1', port, localAddress })
    this.#socket.on('error', () => {})
    this.#socket.on('data', (bytes) => {
      this.#bytes += bytes.length
      if (this.#bytes >= this.#pauseAtBytes) this.#socket.pause()
    })
    this.#closed = new Promise((resolve) => this.#socket.on('close', () => resolve()))
    this.begun = new Promise((resolve) => {
      for (const event of ['data', 'close'] as const) this.#socket.once(event, () => resolve())
    })
    this.#socket.pause()
    this.#socket.write(requests)
  }

  /** The kernel reads more from the server only when a good part of its buffer is free. */
  readSome(bytes = 512 * 1_024): void {
    this.#pauseAtBytes = this.#bytes + bytes
    this.#socket.resume()
  }

  /** Reads until the server closes. Returns the number of bytes. */
  async readAll(): Promise<number> {
    this.#pauseAtBytes = Infinity
    this.#socket.resume()
    await this.#closed
    return this.#bytes
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy()
  }
}
