import { isIP, type Socket } from 'node:net'
import { Agent, type buildConnector, errors, request } from 'undici'
import { openLimitedSocket, type ResponseLimit } from './limited-socket.ts'

/** For what arrives besides the body: TLS, informational responses, headers, chunk sizes. */
const OVERHEAD_BYTES_MAX = 48 * 1_024
/** As in Node. Also the limit of the trailers. */
const HEADER_BYTES_MAX = 16 * 1_024
const HEADERS_MAX = 200
/** What callers read. Libraries would parse others too, such as `www-authenticate` in quadratic time. */
const RETURNED_HEADERS: readonly string[] = ['content-type', 'retry-after']
const CONNECT_MS_MAX = 10_000
/** Long enough for a series of requests. The server may close a connection at any time. */
const IDLE_MS_MAX = 4_000

export type BoundedRequest = {
  method: string
  headers: Record<string, string>
  body?: URLSearchParams | string | undefined
}

export type BoundedFetch = (
  url: string,
  request: BoundedRequest,
  signal: AbortSignal,
) => Promise<Response>

type FetchOptions = {
  bodyBytesMax: number
  /** Aborted when no more requests follow. Closes all connections, even those that are being opened. */
  closeSignal?: AbortSignal
}

/**
 * Like `fetch`, but a response has at most `bodyBytesMax`, its connection receives little more than that, and the
 * signal ends all of it. `fetch` would parse endless informational responses or chunk extensions at full speed
 * until the signal. The response is complete when it is returned, so reading it can't hang. It has only the
 * headers that callers read. Redirects aren't followed.
 */
export function createBoundedFetch({ bodyBytesMax, closeSignal }: FetchOptions): BoundedFetch {
  const bytesMax = bodyBytesMax + OVERHEAD_BYTES_MAX
  const errorFor = (sent: string): Error => new Error(`The server sent ${sent}.`)
  const dispatcher = new Agent({
    connect: createConnector({ bytesMax, errorFor }, closeSignal),
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: IDLE_MS_MAX,
    keepAliveMaxTimeout: IDLE_MS_MAX,
    maxHeaderSize: HEADER_BYTES_MAX,
    // The signal limits the time.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return async (url, { method, headers, body }, signal) => {
    try {
      const response = await request(url, {
        dispatcher,
        method,
        headers: { 'user-agent': 'Annals/1', 'accept-encoding': 'identity', ...headers },
        body: body?.toString() ?? null,
        signal,
      })
      if (Object.values(response.headers).flat().length > HEADERS_MAX) {
        response.body.on('error', () => {}).destroy()
        throw errorFor(`more than ${HEADERS_MAX} headers`)
      }
      const bytes = await readAll(response.body, bodyBytesMax)
      return new Response(bytes.length > 0 ? bytes : null, {
        status: response.statusCode,
        headers: headersOf(response.headers),
      })
    } catch (error) {
      throw error instanceof errors.HeadersOverflowError
        ? errorFor(`more than ${HEADER_BYTES_MAX / 1_024} KiB of headers`)
        : error
    }
  }
}

async function readAll(
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    // Leaving the loop closes the connection.
    if (size > bytesMax) throw new Error(`The server sent more than ${bytesMax / 1_024} KiB.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function headersOf(received: Record<string, string | string[] | undefined>): Headers {
  const headers = new Headers()
  for (const name of RETURNED_HEADERS) {
    for (const value of [received[name] ?? []].flat()) headers.append(name, value)
  }
  return headers
}

function createConnector(
  limit: ResponseLimit,
  closeSignal: AbortSignal | undefined,
): buildConnector.connector {
  return ({ hostname, port, protocol }, callback) => {
    const isTls = protocol === 'https:'
    const servername = isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, '') } : {}
    const socket = openLimitedSocket(
      {
        host: hostname,
        port: Number(port || (isTls ? 443 : 80)),
        tls: isTls ? servername : null,
      },
      limit,
    )
    socket.setNoDelay(true)
    if (closeSignal) destroyWhen(closeSignal, socket)
    untilReady(socket, isTls ? 'secureConnect' : 'connect', (error) => {
      if (error === null) callback(null, socket)
      else callback(error, null)
    })
  }
}

/** A connection that is being opened would keep a process that stops alive until its timeout. */
function destroyWhen(signal: AbortSignal, socket: Socket): void {
  const destroy = (): void => void socket.destroy()
  signal.addEventListener('abort', destroy)
  socket.once('close', () => signal.removeEventListener('abort', destroy))
  if (signal.aborted) destroy()
}

/** Calls back once: when the connection is ready, or with the reason why it never will be. */
function untilReady(
  socket: Socket,
  ready: 'connect' | 'secureConnect',
  callback: (error: Error | null) => void,
): void {
  let isSettled = false
  const settle = (error: Error | null): void => {
    clearTimeout(timer)
    if (isSettled) return
    isSettled = true
    callback(error)
  }
  const fail = (reason: string, cause?: Error): void => {
    settle(new Error(`The connection failed: ${reason}`, { cause }))
    socket.destroy()
  }
  const timer = setTimeout(() => fail('no response in time'), CONNECT_MS_MAX)
  socket.once(ready, () => settle(null))
  socket.once('close', () => fail('closed by the server'))
  // Stays for the life of the socket: an error without a listener would end the process. If a name has several
  // addresses, the message of the error is empty.
  socket.on('error', (error: Error & { code?: string }) => {
    if (!isSettled) fail(error.message || (error.code ?? error.name), error)
  })
}
