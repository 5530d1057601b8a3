import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'

/** Each read costs time, however few bytes it returns. */
const READS_MAX = 1_000
const TLS_CHECK_MS = 100
/** Small, because undici checks its limits only between pieces: it creates an error for every header beyond one. */
const PIECE_BYTES_MAX = 512

/** `tls` is null for http. */
type SocketTarget = { host: string; port: number; tls: ConnectionOptions | null }

export type ResponseLimit = {
  /** For one response including its overhead: TLS, informational responses, headers, chunks. */
  bytesMax: number
  /** The error for a server that sent too much. */
  errorFor: (sent: string) => Error
}

/** Opens the TCP connection separately from TLS, so that its bytes can be counted. */
export function openLimitedSocket({ host, port, tls }: SocketTarget, limit: ResponseLimit): Socket {
  const transport = connectTcp({ host, port })
  const socket = tls
    ? // Node checks the certificate against `host` if there is no name. Its default is `localhost`.
      connectTls({ socket: transport, host, ALPNProtocols: ['http/1.1'], ...tls })
    : transport
  limitResponse(socket, transport, limit)
  readInPieces(socket)
  return socket
}

/**
 * Destroys the connection when the server sends too much for one request, even after the response has
 * ended. It counts bytes below HTTP and TLS, because both skip bytes without reporting them: HTTP skips
 * empty lines, blanks and chunk extensions, TLS skips padding.
 *
 * `transport` is the TCP connection below `socket`, or `socket` itself if there is no TLS.
 */
function limitResponse(
  socket: Socket,
  transport: Socket,
  { bytesMax, errorFor }: ResponseLimit,
): void {
  let bytesWritten = 0
  let bytesRead = 0
  let bytesReadBefore = 0
  let reads = 0

  const check = (): void => {
    // undici writes a request at once, so new bytes are a new request.
    if (socket.bytesWritten !== bytesWritten) {
      bytesWritten = socket.bytesWritten
      bytesReadBefore = bytesRead
      reads = 0
    }
    bytesRead = transport.bytesRead
    if (bytesRead - bytesReadBefore > bytesMax) {
      close(`more than ${bytesMax / 1_024} KiB`)
    } else if (reads > READS_MAX) {
      close(`its response in more than ${READS_MAX} pieces`)
    }
  }

  const close = (sent: string): void => void socket.destroy(errorFor(sent))

  // undici adds its listener later, so each read is counted before it is parsed.
  socket.once(transport === socket ? 'connect' : 'secureConnect', () => {
    socket.on('readable', () => {
      reads += 1
      check()
    })
  })
  if (transport === socket) return
  // TLS handles handshakes and session tickets without an event.
  const timer = setInterval(check, TLS_CHECK_MS).unref()
  socket.once('close', () => clearInterval(timer))
}

/** Also discards what was received before the connection was destroyed, so that it isn't parsed. */
function readInPieces(socket: Socket): void {
  const read = socket.read.bind(socket)
  socket.read = (bytes?: number): unknown => {
    if (bytes !== undefined) return read(bytes)
    if (socket.destroyed) return null
    const received = socket.readableLength
    return received > PIECE_BYTES_MAX ? read(PIECE_BYTES_MAX) : read()
  }
}
