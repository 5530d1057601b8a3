import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { readBody } from '../../../../../sdk/src/webhook/read-body.ts'
import { OperatorError } from '../../../errors.ts'

const HOST = '127.0.0.1'
/** More than any delivery has. */
const BODY_BYTES_MAX = 1_048_576
/** More than the service uses at once for one webhook. */
const CONNECTIONS_MAX = 64
/** As long as the service waits for a response. */
const REQUEST_MS_MAX = 15_000

export type ReceivedRequest = { headers: IncomingHttpHeaders; body: Uint8Array<ArrayBuffer> }

type WebhookReceiver = AsyncDisposable & { url: string }

/** An HTTP server on the loopback address that passes each POST to `handle`, and responds with its status. */
export async function openReceiver(
  port: number,
  handle: (request: ReceivedRequest) => Promise<number>,
): Promise<WebhookReceiver> {
  const server = createServer({ requestTimeout: REQUEST_MS_MAX }, (request, response) => {
    void respond(request, handle).then((status) => {
      // What is left of a body that is too large is not read.
      if (status === 413) response.setHeader('connection', 'close')
      response.writeHead(status).end()
    })
  })
  server.maxConnections = CONNECTIONS_MAX
  server.listen(port, HOST)
  try {
    await once(server, 'listening')
  } catch (cause) {
    throw new OperatorError(`Port ${port} can't be used. Choose another one with --port.`, {
      cause,
    })
  }
  const address = server.address()
  const actual = typeof address === 'object' && address !== null ? address.port : port
  return {
    url: `http://${HOST}:${actual}/`,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function respond(
  request: IncomingMessage,
  handle: (request: ReceivedRequest) => Promise<number>,
): Promise<number> {
  if (request.method !== 'POST') return 405
  try {
    const body = await readBody(request, BODY_BYTES_MAX)
    return body === null ? 413 : await handle({ headers: request.headers, body })
  } catch {
    // The request broke off, or the output has been closed.
    return 500
  }
}
