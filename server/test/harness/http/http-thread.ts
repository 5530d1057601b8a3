import { once } from 'node:events'
import { Agent, request as send } from 'node:http'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

export type ThreadRequest = {
  url: string
  method: string
  headers?: Record<string, string>
  body?: Buffer
  /** Discard the text: passing megabytes to this thread would count as its work. */
  dropsText?: boolean
}
export type ThreadResponse = { status: number; ms: number; text: string }

/**
 * An HTTP client on a separate thread, so that its work doesn't count as work of the server, which runs
 * on this thread.
 */
export class HttpThread implements AsyncDisposable {
  readonly #worker = new Worker(new URL(import.meta.url))
  readonly #waiting = new Map<number, (response: ThreadResponse) => void>()
  #sent = 0

  constructor() {
    this.#worker.on('message', ({ id, response }: { id: number; response: ThreadResponse }) => {
      this.#waiting.get(id)?.(response)
      this.#waiting.delete(id)
    })
  }

  async call(request: ThreadRequest): Promise<ThreadResponse> {
    const id = (this.#sent += 1)
    return await new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- not a window
      this.#worker.postMessage({ id, request })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

async function callNow({
  url,
  method,
  headers,
  body,
  dropsText = false,
}: ThreadRequest): Promise<ThreadResponse> {
  const startedMs = performance.now()
  const outgoing = send(url, { method, agent, headers: { ...headers } })
  if (body) outgoing.setHeader('content-length', body.length)
  outgoing.end(body)
  const [response] = await once(outgoing, 'response')
  let text = ''
  if (!dropsText) response.setEncoding('utf8')
  for await (const chunk of response) if (!dropsText) text += chunk
  return { status: response.statusCode, ms: performance.now() - startedMs, text }
}

const agent = new Agent({ keepAlive: true })

if (!isMainThread) {
  parentPort?.on('message', ({ id, request }: { id: number; request: ThreadRequest }) => {
    void callNow(request)
      .catch((error: unknown) => ({ status: 0, ms: 0, text: String(error) }))
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- not a window
      .then((response) => parentPort?.postMessage({ id, response }))
  })
}
