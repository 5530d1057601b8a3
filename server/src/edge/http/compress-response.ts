import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { onSendAsyncHookHandler } from 'fastify'
import { prefersGzip } from './accept-encoding.ts'

/** A smaller response fits into one packet uncompressed. */
const RESPONSE_LENGTH_MIN = 1_024
/** A larger response would block a pool thread, which other work needs, for more than a tenth of a second. */
const RESPONSE_LENGTH_MAX = 4 * 1_024 * 1_024
const GZIP_LEVEL = 6

const compress = promisify(gzip)

/**
 * An `onSend` hook for routes that return long lists of data from many users, and no secrets. The length of a
 * compressed response leaks information to an attacker who can insert text, trigger requests repeatedly and
 * observe the network. So browsers get compressed responses only to same-origin requests.
 */
export const compressResponse: onSendAsyncHookHandler = async ({ headers }, reply, payload) => {
  reply.header('vary', 'accept-encoding, sec-fetch-site')
  if (typeof payload !== 'string' || !isWorthwhile(payload)) return payload
  if (!prefersGzip(headers['accept-encoding']) || isFromOtherOrigin(headers)) return payload
  const compressed = await compress(payload, { level: GZIP_LEVEL })
  reply.header('content-encoding', 'gzip')
  return compressed
}

function isWorthwhile({ length }: string): boolean {
  return length >= RESPONSE_LENGTH_MIN && length <= RESPONSE_LENGTH_MAX
}

/** Every browser that supports our pages sends this header. Without it, the client isn't a browser. */
function isFromOtherOrigin(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin'
}
