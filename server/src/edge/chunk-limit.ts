/** What follows an early answer is dropped up to this size, a little more than the largest body. */
export const REST_BYTES_MAX = 5 * 1_024 * 1_024

/** A body of more chunks than this must have `CHUNK_BYTES_MIN` per chunk on average. */
export const CHUNKS_MAX = 1_000
export const CHUNK_BYTES_MIN = 64

/**
 * True for a chunked body that costs far more to parse than its bytes are worth: a chunk takes
 * microseconds, and can be a single byte.
 */
export function areChunksTooSmall(chunks: number, bytes: number): boolean {
  return chunks > CHUNKS_MAX && bytes < chunks * CHUNK_BYTES_MIN
}
