/** The parts of a request. A shape decides which parts are sent and how. */
export type Parts = { method: string; path: string; headers: string; body: Buffer }

const CRLF = '\r\n'

export function wholeRequest({ method, path, headers, body }: Parts): Buffer {
  const length =
    body.length > 0 ? `content-type: application/json\r\ncontent-length: ${body.length}\r\n` : ''
  return Buffer.concat([head(`${method} ${path} HTTP/1.1`, `${headers}${length}`), body])
}

/** Unusual ways to send a request. The client disconnects after each. */
export const SHAPES: Record<string, (parts: Parts) => Buffer> = {
  'a whole request': wholeRequest,
  'half a head': (parts) =>
    firstHalf(head(`${parts.method} ${parts.path} HTTP/1.1`, parts.headers)),
  'half a body': ({ method, path, headers }) =>
    Buffer.concat([
      head(
        `${method} ${path} HTTP/1.1`,
        `${headers}content-type: application/json\r\ncontent-length: 1000\r\n`,
      ),
      Buffer.alloc(500, ' '),
    ]),
  'half a chunk': ({ method, path, headers }) =>
    Buffer.concat([
      head(
        `${method} ${path} HTTP/1.1`,
        `${headers}content-type: application/json\r\ntransfer-encoding: chunked\r\n`,
      ),
      Buffer.from('ffff\r\n{"a'),
    ]),
  'HTTP/1.0': ({ method, path, headers }) => head(`${method} ${path} HTTP/1.0`, headers),
  'an expectation': ({ method, path, headers }) =>
    head(`${method} ${path} HTTP/1.1`, `${headers}expect: 100-continue\r\ncontent-length: 10\r\n`),
  'an impossible expectation': ({ method, path, headers }) =>
    head(`${method} ${path} HTTP/1.1`, `${headers}expect: tea\r\n`),
  'an upgrade': ({ method, path, headers }) =>
    head(`${method} ${path} HTTP/1.1`, `${headers}connection: upgrade\r\nupgrade: websocket\r\n`),
  CONNECT: ({ headers }) => head('CONNECT 127.0.0.1:9 HTTP/1.1', headers),
  'CONNECT behind it': (parts) =>
    Buffer.concat([wholeRequest(parts), head('CONNECT 127.0.0.1:9 HTTP/1.1', parts.headers)]),
  'ten in a row': (parts) => Buffer.concat(Array.from({ length: 10 }, () => wholeRequest(parts))),
  'garbage behind it': (parts) => Buffer.concat([wholeRequest(parts), Buffer.from('\x00\xff\x16')]),
}

function head(line: string, headers: string): Buffer {
  return Buffer.from(`${line}${CRLF}host: annals${CRLF}${headers}${CRLF}`)
}

function firstHalf(bytes: Buffer): Buffer {
  return bytes.subarray(0, Math.ceil(bytes.length / 2))
}
