import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

type Mode = 'pass' | 'refuse' | 'stall'

/**
 * A TCP proxy on loopback before the test's PostgreSQL. It can cut every connection, refuse new
 * ones, hold bytes back, and cut at the moment the client sends a given text.
 */
export class PgProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #pairs = new Set<[client: Socket, upstream: Socket]>()
  #mode: Mode = 'pass'
  #cutAt: { text: string; when: 'before' | 'after' } | null = null

  private constructor(upstreamPath: string) {
    this.#server = createServer((client) => this.#join(client, connect(upstreamPath)))
  }

  static async listen(upstream: { host: string; port: number }): Promise<PgProxy> {
    const proxy = new PgProxy(`${upstream.host}/.s.PGSQL.${upstream.port}`)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  set mode(mode: Mode) {
    this.#mode = mode
    if (mode === 'refuse') this.cutAll()
    for (const [client, upstream] of this.#pairs) {
      for (const socket of [client, upstream]) {
        if (mode === 'stall') socket.pause()
        else socket.resume()
      }
    }
  }

  /** Cuts the connection whose client sends this text: before the server sees it, or after. */
  cutOnceAt(text: string, when: 'before' | 'after'): void {
    this.#cutAt = { text, when }
  }

  get isArmed(): boolean {
    return this.#cutAt !== null
  }

  cutAll(): void {
    for (const pair of this.#pairs) cut(pair)
  }

  #join(client: Socket, upstream: Socket): void {
    const pair: [Socket, Socket] = [client, upstream]
    if (this.#mode === 'refuse') {
      cut(pair)
      return
    }
    this.#pairs.add(pair)
    for (const socket of pair) {
      socket.on('error', () => cut(pair))
      socket.on('close', () => {
        cut(pair)
        this.#pairs.delete(pair)
      })
    }
    client.on('data', (bytes) => this.#toServer(pair, bytes))
    upstream.on('data', (bytes) => client.write(bytes))
    if (this.#mode === 'stall') client.pause()
  }

  #toServer(pair: [Socket, Socket], bytes: Buffer): void {
    const target = this.#cutAt
    if (!target || !bytes.includes(target.text)) {
      pair[1].write(bytes)
      return
    }
    this.#cutAt = null
    if (target.when === 'before') {
      cut(pair)
      return
    }
    // The server works on it, and its answer reaches nobody.
    pair[1].removeAllListeners('data')
    pair[1].write(bytes)
    pair[1].once('data', () => cut(pair))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

function cut([client, upstream]: readonly [Socket, Socket]): void {
  client.destroy()
  upstream.destroy()
}
