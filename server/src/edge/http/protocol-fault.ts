import type { IncomingMessage } from 'node:http'
import { ApiError, type ErrorCode } from '../../errors.ts'

/** Errors of Node's HTTP parser that are not simply malformed HTTP. */
const PARSER_CODES: Record<string, ErrorCode> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** The response to a request that the parser could not read. */
export function parserFault(error: Error & { code?: string }): ApiError {
  const code = PARSER_CODES[error.code ?? '']
  if (code) return new ApiError(code, { cause: error })
  return invalidRequestError('This is not a well-formed HTTP request.')
}

/**
 * Why a request can't be served because of its head, whatever its path. Null if it can. A proxy could
 * interpret each of these requests differently, so the connection ends.
 */
export function protocolFault(request: IncomingMessage): ApiError | null {
  const { httpVersion, method, url, headers, rawHeaders } = request
  const isHttp10 = httpVersion === '1.0'
  if (!isHttp10 && httpVersion !== '1.1') return invalidRequestError('HTTP/1.1 is required.')
  if (method === 'CONNECT') return new ApiError('method_not_allowed')
  // The router would take it for a route with a wildcard.
  if (url === '*' && method !== 'OPTIONS')
    return invalidRequestError('The path * is only valid with OPTIONS.')
  const encoding = headers['transfer-encoding']
  if (isHttp10 && encoding !== undefined)
    return invalidRequestError('Transfer-Encoding requires HTTP/1.1.')
  // The parser accepts other codings before `chunked` but doesn't decode them.
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') {
    return invalidRequestError('The only supported Transfer-Encoding is chunked.')
  }
  // HTTP/1.0 has no Expect header, so it is ignored there.
  if (!isHttp10 && headers.expect !== undefined && !/^100-continue$/i.test(headers.expect)) {
    return invalidRequestError('The Expect header can only be 100-continue.')
  }
  const repeated = repeatedHeader(rawHeaders)
  if (repeated !== null) return invalidRequestError(`The ${repeated} header must appear only once.`)
  if (headers.host === undefined)
    return isHttp10 ? null : invalidRequestError('The Host header is missing.')
  return HOST.test(headers.host)
    ? null
    : invalidRequestError('The Host header is not a valid host.')
}

/** `uri-host [":" port]` of RFC 9110, section 7.2. An empty host is legal. */
const HOST = /^(?:\[[\w.:~!$&'()*+,;=%-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/

/**
 * Node keeps the first of these headers and drops the rest, but a proxy may keep the last. The parser
 * already refuses a repeated `Content-Length`. `Authorization` is checked with the key.
 */
function repeatedHeader(rawHeaders: readonly string[]): string | null {
  let hosts = 0
  let contentTypes = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    // Compare lengths first: this runs for every header of every request.
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
    else if (name.length === 12 && name.toLowerCase() === 'content-type') contentTypes += 1
  }
  if (hosts > 1) return 'Host'
  return contentTypes > 1 ? 'Content-Type' : null
}

function invalidRequestError(message: string): ApiError {
  return new ApiError('invalid_request', { message })
}
