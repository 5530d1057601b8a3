import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ApiError, type ErrorCode } from '../errors.ts'
import { errorBody } from './error-handler.ts'
import { newTraceId, traceIdOf } from './trace.ts'

/** What only the HTTP parser sees, before there is a request. */
const PARSER_CODES: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

type Exchange = { request: IncomingMessage; response: ServerResponse }

/** The exchanges of each connection as far as they may be unfinished; pipelining makes several. */
const underWay = new WeakMap<Socket, Exchange[]>()

/** Node would answer all of these with an empty body, or out of turn. */
export function answerStrayRequests(server: Server): void {
  server.on('request', (request, response) => {
    const unanswered = (underWay.get(request.socket) ?? []).filter(isUnanswered)
    underWay.set(request.socket, [...unanswered, { request, response }])
  })
  server.on('connect', (request) => answerRaw('method_not_allowed', request))
  server.on('checkExpectation', (request) =>
    answerRaw('invalid_request', request, 'The Expect header can only be 100-continue.'),
  )
}

/**
 * For `clientErrorHandler`: the parser gave up, so the answer is written by hand. What was asked
 * before on this connection is answered first: its answer must not be taken for this one.
 */
export function answerParserError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  // The last answer is on its way; what still comes in is more of what was refused.
  if (!socket.writable) return
  const code = PARSER_CODES[error.code ?? ''] ?? 'invalid_request'
  const message = code === 'invalid_request' ? 'This is not a well-formed HTTP request.' : undefined
  const apiError = new ApiError(code, message === undefined ? {} : { message })
  const exchanges = underWay.get(socket) ?? []
  const refused = exchanges.find(({ request }) => !request.complete)
  const before = exchanges.filter(isUnanswered).findLast(({ request }) => request.complete)
  const answer = () => {
    // A caller that was answered without its body has its answer; a second would be nobody's.
    if (refused?.response.headersSent) socket.destroySoon()
    else endWithError(socket, apiError, newTraceId())
  }
  if (before) before.response.once('close', answer)
  else answer()
}

function isUnanswered({ response }: Exchange): boolean {
  return !response.writableFinished
}

function answerRaw(code: ErrorCode, request: IncomingMessage, message?: string): void {
  const error = new ApiError(code, message === undefined ? {} : { message })
  endWithError(request.socket, error, traceIdOf(request.headers))
}

/** Long enough to read an answer; a caller that does not hang up then is hung up on. */
const LINGER_MS = 1_000

function endWithError(socket: Socket, error: ApiError, traceId: string): void {
  const body = JSON.stringify(errorBody(error, traceId))
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.end(
    [
      `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}`,
      'content-type: application/json; charset=utf-8',
      `content-length: ${Buffer.byteLength(body)}`,
      `x-trace-id: ${traceId}`,
      // No path was asked for, so there is no method to name.
      ...(error.status === 405 ? ['allow:'] : []),
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  )
}
