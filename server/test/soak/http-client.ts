import { Agent, type ClientRequest, type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'

export type Reply = {
  /** Null if the connection broke or the response timed out. The outcome is then unknown. */
  status: number | null
  headers: IncomingHttpHeaders
  // oxlint-disable-next-line typescript/no-explicit-any -- each activity reads the fields it expects
  json: any
  text: string
  durationMs: number
}

export type SendOptions = { key?: string; body?: object; headers?: Record<string, string> }

/** Longer than any fault, so that a timeout means a lost response. */
const REPLY_MS_MAX = 20_000
const BROKEN = { status: null, headers: {}, json: null, text: '' }

/** Keep-alive connections to the service, which a fault can cut all at once. */
export class HttpClient implements Disposable {
  readonly #agent = new Agent({ keepAlive: true })
  readonly #running = new Set<ClientRequest>()
  readonly #url: () => string

  /** The URL is read before each request, because the port changes after a restart. */
  constructor(url: () => string) {
    this.#url = url
  }

  async send(method: string, path: string, options: SendOptions = {}): Promise<Reply> {
    const startedAtMs = performance.now()
    const reply = await this.#exchange(method, path, options)
    return { ...reply, durationMs: performance.now() - startedAtMs }
  }

  #exchange(
    method: string,
    path: string,
    { key, body, headers }: SendOptions,
  ): Promise<Omit<Reply, 'durationMs'>> {
    const payload = body && JSON.stringify(body)
    return new Promise((resolve) => {
      const outgoing = request(`${this.#url()}${path}`, {
        method,
        agent: this.#agent,
        signal: AbortSignal.timeout(REPLY_MS_MAX),
        headers: {
          ...(key !== undefined && { authorization: `Bearer ${key}` }),
          ...(payload !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(payload),
          }),
          ...headers,
        },
      })
      this.#running.add(outgoing)
      outgoing.once('close', () => this.#running.delete(outgoing))
      outgoing.on('error', () => resolve(BROKEN))
      outgoing.on('response', (response) => {
        text(response).then(
          (received) => {
            const isJson = response.headers['content-type']?.startsWith('application/json') === true
            const json = isJson ? JSON.parse(received) : null
            const { headers } = response
            resolve({ status: response.statusCode ?? null, headers, json, text: received })
          },
          () => resolve(BROKEN),
        )
      })
      outgoing.end(payload)
    })
  }

  /** Closes every connection, including those with requests in progress. */
  cutAll(): void {
    for (const outgoing of this.#running) outgoing.destroy()
    this.#agent.destroy()
  }

  [Symbol.dispose](): void {
    this.cutAll()
  }
}
