import type { IncomingHttpHeaders } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { onSendAsyncHookHandler } from 'fastify'
import { prefersGzip } from './accept-encoding.ts'

/** A smaller answer fits into one packet as it is. */
const ANSWER_LENGTH_MIN = 1_024
/** A larger one would hold a thread, which others wait for, for more than a tenth of a second. */
const ANSWER_LENGTH_MAX = 4 * 1_024 * 1_024
const GZIP_LEVEL = 6

const pack = promisify(gzip)

/**
 * For `onSend` of routes that answer with long lists of what many people wrote, and with no secret: the
 * length of a packed answer tells something about its content to whoever can put words into it, have
 * it asked for again and again, and watch the wire. So another site's page gets the plain bytes.
 */
export const packAnswer: onSendAsyncHookHandler = async ({ headers }, reply, answer) => {
  reply.header('vary', 'accept-encoding, sec-fetch-site')
  if (typeof answer !== 'string' || !isWorthwhile(answer)) return answer
  if (!prefersGzip(headers['accept-encoding']) || isFromElsewhere(headers)) return answer
  const packed = await pack(answer, { level: GZIP_LEVEL })
  reply.header('content-encoding', 'gzip')
  return packed
}

function isWorthwhile({ length }: string): boolean {
  return length >= ANSWER_LENGTH_MIN && length <= ANSWER_LENGTH_MAX
}

/** Every browser that shows our pages says where a request comes from; who says nothing is none. */
function isFromElsewhere(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin'
}
