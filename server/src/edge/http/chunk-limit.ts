/** The rest of a body after an early response is dropped up to this size, slightly above the largest body. */
export const REST_BYTES_MAX = 5 * 1_024 * 1_024

/** A body with more chunks than this must average at least `CHUNK_BYTES_MIN` per chunk. */
export const CHUNKS_MAX = 1_000
export const CHUNK_BYTES_MIN = 64

/**
 * True for a chunked body that costs far more to parse than its size justifies: each chunk takes
 * microseconds, and can be a single byte.
 */
export function areChunksTooSmall(chunks: number, bytes: number): boolean {
  return chunks > CHUNKS_MAX && bytes < chunks * CHUNK_BYTES_MIN
}
