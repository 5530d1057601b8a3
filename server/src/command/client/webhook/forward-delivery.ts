import type { ReceivedRequest } from './webhook-receiver.ts'

/** Less than the service waits for a response. */
const FORWARD_MS_MAX = 12_000
/** They belong to the connection, not to the request. */
const OWN_HEADERS = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'expect'])

/** Sends a delivery on, with its bytes and headers unchanged, and returns the status of the response. */
export async function forwardDelivery(
  url: string,
  { headers, body }: ReceivedRequest,
): Promise<number> {
  const forwarded = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined || OWN_HEADERS.has(name) ? [] : [[name, String(value)]],
  )
  const response = await fetch(url, {
    method: 'POST',
    headers: forwarded,
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(FORWARD_MS_MAX),
  })
  await response.body?.cancel()
  return response.status
}
