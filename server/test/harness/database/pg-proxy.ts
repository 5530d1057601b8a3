import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

type Upstream = { host: string; port: number }
type Mode = 'pass' | 'refuse' | 'stall'
type Cut = 'before' | 'after' | 'silent'

/**
 * A TCP proxy on loopback in front of the test's PostgreSQL. It can cut every connection, refuse
 * new ones, stall, cut when the client sends a given text, and change the responses.
 */
export class PgProxy implements AsyncDisposable {
  readonly #server: Server
  readonly #pairs = new Set<[client: Socket, upstream: Socket]>()
  /** Connections that stay open but are silent forever. */
  readonly #silenced: [client: Socket, upstream: Socket][] = []
  #mode: Mode = 'pass'
  #cutAt: { text: string; when: Cut } | null = null
  #rewrite: { from: string; to: string } | null = null
  /**
   * Behaves like PgBouncer with `ignore_startup_parameters=options`: drops the settings that the client
   * requested for a new connection.
   */
  dropsSettings = false
  /**
   * Like a server without free slots, refuses new connections of applications whose name contains
   * this.
   */
  fullFor: string | null = null
  fullRefusals = 0
  readonly #counters = new Set<(bytes: Buffer) => void>()
  /** The server that new connections reach, like the address of a cluster that moves to another server. */
  upstream: Upstream

  private constructor(upstream: Upstream) {
    this.upstream = upstream
    this.#server = createServer((client) => {
      const { host, port } = this.upstream
      this.#join(client, connect(`${host}/.s.PGSQL.${port}`))
    })
  }

  static async listen(upstream: Upstream): Promise<PgProxy> {
    const proxy = new PgProxy(upstream)
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

  /** How an app reaches the database behind this proxy. */
  urlTo({
    user,
    password,
    database,
  }: {
    user: string
    password: string
    database: string
  }): string {
    return `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${this.port}/${database}`
  }

  /**
   * Cuts the connection whose client sends this text: before the server sees it, or after. With
   * `silent`, the server sees it, but both sides stay connected and receive nothing more.
   */
  cutOnceAt(text: string, when: Cut): void {
    this.#cutAt = { text, when }
  }

  get isArmed(): boolean {
    return this.#cutAt !== null
  }

  /** Counts the messages from clients that contain this text, from now on. */
  countSent(text: string): () => number {
    let count = 0
    this.#counters.add((bytes) => {
      if (bytes.includes(text)) count += 1
    })
    return () => count
  }

  /** Counts the statements from clients, from now on. They send one at a time, in one or more chunks. */
  countStatements(): () => number {
    let count = 0
    this.#counters.add((bytes) => {
      if (bytes[0] === SIMPLE_QUERY || bytes.includes(SYNC)) count += 1
    })
    return () => count
  }

  /**
   * Replaces text in the server's messages. Both must have the same length, because messages
   * contain their length.
   */
  rewriteResponses(from: string, to: string): void {
    assert.equal(from.length, to.length)
    this.#rewrite = { from, to }
  }

  /** Simulates a network that drops packets: open connections stay open and silent, new ones work. */
  silenceAll(): void {
    for (const pair of this.#pairs) this.#silence(pair)
  }

  #silence(pair: [Socket, Socket]): void {
    for (const socket of pair) {
      socket.pause()
      // Neither side may notice that the other closed.
      socket.removeAllListeners('close')
      socket.removeAllListeners('error')
      socket.on('error', () => {})
    }
    this.#silenced.push(pair)
    this.#pairs.delete(pair)
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
    let isStarting = true
    client.on('data', (bytes) => {
      if (isStarting && this.fullFor !== null && bytes.includes(this.fullFor)) {
        this.fullRefusals += 1
        client.end(TOO_MANY_CONNECTIONS)
        return
      }
      this.#toServer(pair, isStarting && this.dropsSettings ? withoutSettings(bytes) : bytes)
      isStarting = false
    })
    upstream.on('data', (bytes) => client.write(this.#altered(bytes)))
    if (this.#mode === 'stall') client.pause()
  }

  #altered(bytes: Buffer): Buffer {
    if (!this.#rewrite) return bytes
    const { from, to } = this.#rewrite
    return Buffer.from(bytes.toString('latin1').replaceAll(from, to), 'latin1')
  }

  #toServer(pair: [Socket, Socket], bytes: Buffer): void {
    for (const count of this.#counters) count(bytes)
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
    if (target.when === 'silent') {
      pair[1].write(bytes)
      this.#silence(pair)
      return
    }
    // The server works on it, but its response is dropped.
    pair[1].removeAllListeners('data')
    pair[1].write(bytes)
    pair[1].once('data', () => cut(pair))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll()
    for (const pair of this.#silenced) cut(pair)
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** Starts the message of a statement without parameters. */
const SIMPLE_QUERY = 'Q'.charCodeAt(0)
/** Ends the messages of a statement with parameters. */
const SYNC = Buffer.from('S\0\0\0\x04', 'latin1')

/** An ErrorResponse: for each field a type byte, its text and a zero; then a zero. */
const TOO_MANY_CONNECTIONS = errorMessage('SFATAL\0C53300\0Msorry, too many clients already\0\0')

function errorMessage(fields: string): Buffer {
  const message = Buffer.from(`E....${fields}`, 'latin1')
  message.writeInt32BE(message.length - 1, 1)
  return message
}

/** The first message of a connection, without its `options`. It is sent, and arrives, in one piece. */
function withoutSettings(startup: Buffer): Buffer {
  const HEAD_BYTES = 8
  assert.equal(startup.readInt32BE(0), startup.length, 'one whole message')
  const words = startup.toString('utf8', HEAD_BYTES).split('\0')
  const at = words.findIndex((word, nth) => nth % 2 === 0 && word === 'options')
  const body = Buffer.from(words.toSpliced(at, at === -1 ? 0 : 2).join('\0'))
  const head = Buffer.from(startup.subarray(0, HEAD_BYTES))
  head.writeInt32BE(HEAD_BYTES + body.length, 0)
  return Buffer.concat([head, body])
}

function cut([client, upstream]: readonly [Socket, Socket]): void {
  client.destroy()
  upstream.destroy()
}
