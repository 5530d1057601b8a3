import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Connection } from '../client/connection.ts'
import { AnnalsNetworkError, AnnalsTimeoutError } from '../client/errors.ts'
import { type ApiRequest, headersOf, readErrorText, toApiError, urlOf } from '../client/send.ts'

/** Starts a download with Node's HTTP client, because `fetch` can't read trailers. */
export async function openDownload(
  connection: Connection,
  request: ApiRequest,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  const response = await respond(connection, request, signal)
  const { statusCode = 0, headers } = response
  if (statusCode === 200) return response
  throw toApiError({
    status: statusCode,
    text: await readErrorText(response),
    header: (name) => String(headers[name] ?? '') || null,
    nowMs: connection.clock(),
  })
}

function respond(
  connection: Connection,
  request: ApiRequest,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage> {
  signal?.throwIfAborted()
  const url = urlOf(connection, request)
  const send = url.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const outgoing = send(url, {
      method: request.method,
      // The hash is that of the uncompressed file.
      headers: { ...headersOf(connection, request), 'accept-encoding': 'identity' },
      ...(signal && { signal }),
    })
    outgoing.setTimeout(connection.timeoutMs, () => {
      const message = `The download did not start within ${connection.timeoutMs} ms.`
      outgoing.destroy(new AnnalsTimeoutError(message, { code: 'timeout' }))
    })
    outgoing.once('response', resolve)
    outgoing.on('error', (cause) => {
      if (signal?.aborted) return reject(signal.reason)
      if (cause instanceof AnnalsTimeoutError) return reject(cause)
      const message = 'The download could not be started.'
      reject(new AnnalsNetworkError(message, { code: 'network_error', cause }))
    })
    outgoing.end()
  })
}
