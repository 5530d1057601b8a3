import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../../platform/logger.ts'
import { HttpListener, type ListenAddress } from '../http-listener.ts'
import type { Witness, WitnessAnswer } from './witness.ts'

const CONNECTIONS_MAX = 256
/** A proof has at most 63 hashes, and a checkpoint a few signatures. */
const BODY_BYTES_MAX = 64 * 1_024
/** Reads this much of a larger body, so that its client gets the response. Beyond that, the connection is closed. */
const READ_BYTES_MAX = 1_024 * 1_024
/** Logs send a checkpoint every few seconds, each in a packet or two. */
const REQUEST_MS_MAX = 10_000

type Answer = Omit<WitnessAnswer, 'status'> & { status: WitnessAnswer['status'] | 405 | 413 }

/** Serves a witness: `POST /add-checkpoint`, and `GET /` with its verifier key. */
export async function serveWitness(
  { witness, vkey, logger }: { witness: Witness; vkey: string; logger: Logger },
  at: ListenAddress,
): Promise<HttpListener> {
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    answerTo(request, { witness, vkey }).then(
      (answer) => {
        const { status, text } = answer
        if (status >= 400) logger.info({ event: 'witness.refused', status, reason: text.trim() })
        send(response, answer)
      },
      (error: unknown) => {
        logger.error({ event: 'witness.failed', err: error })
        send(response, { status: 503, text: 'The checkpoint can’t be stored. Try again later.\n' })
      },
    )
  }
  const timeouts = { requestMs: REQUEST_MS_MAX }
  return await HttpListener.listen(
    { name: 'witness', connectionsMax: CONNECTIONS_MAX, serve, logger, timeouts },
    at,
  )
}

async function answerTo(
  request: IncomingMessage,
  { witness, vkey }: { witness: Witness; vkey: string },
): Promise<Answer> {
  const { method, url } = request
  if (url === '/' && method === 'GET') return { status: 200, text: `${vkey}\n` }
  if (url !== '/add-checkpoint') return { status: 404, text: 'Not found.\n' }
  if (method !== 'POST') return { status: 405, text: 'Use POST.\n' }
  const body = await readBody(request)
  if (body === null) {
    return { status: 413, text: `The body has more than ${BODY_BYTES_MAX} bytes.\n` }
  }
  return await witness.addCheckpoint(body)
}

/** Null if the body is too large. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    const piece: unknown = chunk
    if (!Buffer.isBuffer(piece)) continue
    bytes += piece.length
    if (bytes <= BODY_BYTES_MAX) chunks.push(piece)
    else if (bytes > READ_BYTES_MAX) return null
  }
  return bytes > BODY_BYTES_MAX ? null : Buffer.concat(chunks).toString()
}

function send(response: ServerResponse, { status, text, contentType }: Answer): void {
  response
    .writeHead(status, { 'content-type': contentType ?? 'text/plain; charset=utf-8' })
    .end(text)
}
