import type { DeflateRaw, Gzip } from 'node:zlib'

/**
 * Compresses chunks off the main thread. Not a pipeline, so that a chunk is requested only after the previous one
 * was compressed and read: its buffer may be reused.
 */
export async function* compressChunks(
  chunks: AsyncIterable<Buffer> | Iterable<Buffer>,
  compressor: Gzip | DeflateRaw,
): AsyncGenerator<Buffer, void, void> {
  let pieces: Buffer[] = []
  compressor.on('data', (piece: Buffer) => pieces.push(piece))
  const take = () => {
    const taken = pieces
    pieces = []
    return taken
  }
  try {
    for await (const chunk of chunks) {
      await new Promise<void>((resolve, reject) => {
        compressor.write(chunk, (error) => (error ? reject(error) : resolve()))
      })
      yield* take()
    }
    const ended = new Promise((resolve, reject) =>
      compressor.once('end', resolve).once('error', reject),
    )
    compressor.end()
    await ended
    yield* take()
  } finally {
    compressor.destroy()
  }
}
