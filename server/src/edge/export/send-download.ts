import type { ServerResponse } from 'node:http'
import { createGzip } from 'node:zlib'
import { compressChunks } from '../../platform/compress-chunks.ts'

/**
 * The content of a download. `finish` is called when all of it has been written, and returns the trailers.
 */
type Sendable = {
  /** A chunk is valid until the next one is requested. */
  chunks: () => AsyncIterable<Buffer>
  finish: () => Promise<Record<string, string>>
  /** Aborted when the download must be cut. */
  signal: AbortSignal
}

/** The outcome of a download. */
export type TransferResult = { kind: 'complete' } | { kind: 'cut'; cause: unknown }

/**
 * The fastest level: it compresses 104 MB of JSONL to 25 MB. Higher levels would cost the node too much CPU.
 */
const GZIP_LEVEL = 1

/**
 * Sends a body of unknown length after the headers, piece by piece as the client reads, followed by its
 * trailers. Any failure cuts the connection, so that no client takes a partial body for a complete one.
 */
export async function sendDownload(
  response: ServerResponse,
  download: Sendable,
  { isGzip, stallMsMax }: { isGzip: boolean; stallMsMax: number },
): Promise<TransferResult> {
  const pieces = isGzip
    ? compressChunks(download.chunks(), createGzip({ level: GZIP_LEVEL }))
    : download.chunks()
  // An abort takes effect immediately, even while waiting for the next piece.
  const onAbort = () => cutConnection(response)
  download.signal.addEventListener('abort', onAbort)
  try {
    for await (const piece of pieces) {
      await write(response, piece, { signal: download.signal, stallMsMax })
    }
    download.signal.throwIfAborted()
    const trailers = await download.finish()
    // HTTP/1.0 has no chunks and no trailers. The end of the connection is the end of the file.
    if (response.chunkedEncoding) response.addTrailers(trailers)
    response.end()
    return { kind: 'complete' }
  } catch (cause) {
    cutConnection(response)
    return { kind: 'cut', cause }
  } finally {
    download.signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Resets the connection. An HTTP/1.0 client would treat a normal close as the end of the file. A reset
 * also drops unsent data.
 */
function cutConnection(response: ServerResponse): void {
  response.socket?.resetAndDestroy()
  response.destroy()
}

/** Resolves when the piece has left the process, so that no output piles up in memory. */
function write(
  response: ServerResponse,
  piece: Buffer,
  { signal, stallMsMax }: { signal: AbortSignal; stallMsMax: number },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stopped = () => reject(signal.reason)
  const timer = setTimeout(() => reject(new Error('the client stopped reading')), stallMsMax)
  signal.addEventListener('abort', stopped)
  if (signal.aborted) stopped()
  response.write(piece, (error) => (error ? reject(error) : resolve()))
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', stopped)
  })
}
