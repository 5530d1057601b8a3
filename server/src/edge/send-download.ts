import type { ServerResponse } from 'node:http'
import { createGzip } from 'node:zlib'

/** What is sent: `finish` is called when all of it is on its way, and gives the trailers. */
export type Sendable = {
  /** Each is good until the next one is asked for. */
  chunks: () => AsyncIterable<Buffer>
  finish: () => Promise<{ rows: number; sha256: string }>
  /** Aborted when it must be cut. */
  signal: AbortSignal
}

/** What became of it. */
export type Sending = { kind: 'complete' } | { kind: 'cut'; cause: unknown }

/** The quickest: 104 MB of JSONL become 25 MB. The rest would be paid for with the node's time. */
const GZIP_LEVEL = 1

/**
 * Sends a body of unknown length after the headers, which are out: piece by piece as the client takes
 * them, with trailers that say what it was. Whatever goes wrong cuts the connection, so that nobody
 * takes a part for the whole.
 */
export async function sendDownload(
  response: ServerResponse,
  download: Sendable,
  { isGzip, stallMsMax }: { isGzip: boolean; stallMsMax: number },
): Promise<Sending> {
  const pieces = isGzip ? gzipped(download.chunks()) : download.chunks()
  // Take effect immediately, even while waiting for the next piece.
  const onAbort = () => cut(response)
  download.signal.addEventListener('abort', onAbort)
  try {
    for await (const piece of pieces) {
      await write(response, piece, { signal: download.signal, stallMsMax })
    }
    download.signal.throwIfAborted()
    const { rows, sha256 } = await download.finish()
    // An older client has no chunks and no trailers: for it the end of the connection is the end.
    if (response.chunkedEncoding) {
      response.addTrailers({ 'x-row-count': String(rows), 'x-content-sha256': sha256 })
    }
    response.end()
    return { kind: 'complete' }
  } catch (cause) {
    cut(response)
    return { kind: 'cut', cause }
  } finally {
    download.signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Resets the connection. An HTTP/1.0 client would take a normal close for the end of the file. A reset
 * also drops unsent data.
 */
function cut(response: ServerResponse): void {
  response.socket?.resetAndDestroy()
  response.destroy()
}

/** The next piece is asked for when this one has left the process: nothing piles up here. */
function write(
  response: ServerResponse,
  piece: Buffer,
  { signal, stallMsMax }: { signal: AbortSignal; stallMsMax: number },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stopped = () => reject(signal.reason)
  const timer = setTimeout(() => reject(new Error('the client takes nothing')), stallMsMax)
  signal.addEventListener('abort', stopped)
  if (signal.aborted) stopped()
  response.write(piece, (error) => (error ? reject(error) : resolve()))
  return promise.finally(() => {
    clearTimeout(timer)
    signal.removeEventListener('abort', stopped)
  })
}

/** By hand, so that a piece is asked for only when the one before is compressed and taken. */
async function* gzipped(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  const gzip = createGzip({ level: GZIP_LEVEL })
  let pieces: Buffer[] = []
  gzip.on('data', (piece: Buffer) => pieces.push(piece))
  const take = () => {
    const taken = pieces
    pieces = []
    return taken
  }
  try {
    for await (const chunk of chunks) {
      await new Promise<void>((resolve, reject) => {
        gzip.write(chunk, (error) => (error ? reject(error) : resolve()))
      })
      yield* take()
    }
    const ended = new Promise((resolve, reject) => gzip.once('end', resolve).once('error', reject))
    gzip.end()
    await ended
    yield* take()
  } finally {
    gzip.destroy()
  }
}
