import assert from 'node:assert/strict'
import type { SearchToken } from './search-tokens.ts'

/**
 * A set of tokens as a Bloom filter, which can contain tokens that were not added, but never misses one. All
 * bits of a token are in one bucket, so a search reads only that bucket of each filter.
 */
export const BUCKET_BYTES = 128
const BUCKET_BITS = BUCKET_BYTES * 8
/** With 12 bits per token and 8 of them set, one in about 250 other tokens seems to be in the set. */
const BITS_PER_TOKEN = 12
const BITS_SET = 8

/** `bytesMax` limits its size. With more tokens than fit well, more other tokens seem to be in the set. */
export function buildTokenFilter(
  tokens: ReadonlySet<SearchToken>,
  { bytesMax }: { bytesMax: number },
): Buffer {
  const wanted = Math.ceil((tokens.size * BITS_PER_TOKEN) / BUCKET_BITS)
  const buckets = Math.max(1, Math.min(wanted, Math.floor(bytesMax / BUCKET_BYTES)))
  const filter = Buffer.alloc(buckets * BUCKET_BYTES)
  for (const token of tokens) {
    const start = (token % buckets) * BUCKET_BYTES
    const { first, step } = bitsOf(token)
    for (let nth = 0, bit = first; nth < BITS_SET; nth += 1, bit = (bit + step) % BUCKET_BITS) {
      const at = start + (bit >>> 3)
      filter[at] = (filter[at] ?? 0) | (1 << (bit & 7))
    }
  }
  return filter
}

/** Whether a token may be in the set, given its bucket: number `token % buckets` of the filter. */
export function bucketMayHave(bucket: Buffer, token: SearchToken): boolean {
  assert.equal(bucket.length, BUCKET_BYTES)
  const { first, step } = bitsOf(token)
  for (let nth = 0, bit = first; nth < BITS_SET; nth += 1, bit = (bit + step) % BUCKET_BITS) {
    if (((bucket[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false
  }
  return true
}

/** Mixes the token again, because its remainder already chose the bucket. */
function bitsOf(token: SearchToken): { first: number; step: number } {
  const mixed = Math.imul(token ^ (token >>> 15), 0x2c1b3c6d)
  const bits = (mixed ^ (mixed >>> 12)) >>> 0
  return { first: bits % BUCKET_BITS, step: ((bits >>> 10) % BUCKET_BITS) | 1 }
}
