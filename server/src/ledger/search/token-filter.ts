import assert from 'node:assert/strict'
import type { SearchToken, TokenTable } from './token-table.ts'

/**
 * The tokens of a block and their slices as a Bloom filter, which can contain pairs that were not added, but
 * never misses one. All bits of a token are in one bucket, so a search reads only that bucket of each filter.
 */
export const BUCKET_BYTES = 128
const BUCKET_BITS = BUCKET_BYTES * 8
/** With 12 bits per pair and 6 of them set, one in about 250 other pairs seems to be in the set. */
const BITS_PER_PAIR = 12
const BITS_SET = 6
/** More, because each search also looks for this pair. */
const BITS_SET_FOR_ALL = 12
/** The most slices of a block. */
export const SLICES_MAX = 16
/** A token in more slices than this is added once, for all slices, so that it doesn't fill its bucket. */
const SLICES_LISTED_MAX = 6
const ALL_SLICES = SLICES_MAX

/** `bytesMax` limits its size. With more pairs than fit well, more other pairs seem to be in the set. */
export function buildTokenFilter(table: TokenTable, { bytesMax }: { bytesMax: number }): Buffer {
  const { tokens, sliceCounts } = table.found
  const { indexes, slices } = table.pairs
  let pairs = 0
  for (let index = 0; index < sliceCounts.length; index += 1) {
    const count = sliceCounts[index] ?? 0
    pairs += count > SLICES_LISTED_MAX ? 1 : count
  }
  const wanted = Math.ceil((pairs * BITS_PER_PAIR) / BUCKET_BITS)
  const buckets = Math.max(1, Math.min(wanted, Math.floor(bytesMax / BUCKET_BYTES)))
  const filter = new Uint8Array(buckets * BUCKET_BYTES)
  for (let nth = 0; nth < indexes.length; nth += 1) {
    const index = indexes[nth] ?? 0
    if ((sliceCounts[index] ?? 0) > SLICES_LISTED_MAX) continue
    setBits(filter, buckets, tokens[index] ?? 0, slices[nth] ?? 0)
  }
  for (let index = 0; index < tokens.length; index += 1) {
    if ((sliceCounts[index] ?? 0) <= SLICES_LISTED_MAX) continue
    setBits(filter, buckets, tokens[index] ?? 0, ALL_SLICES)
  }
  return Buffer.from(filter.buffer)
}

function setBits(filter: Uint8Array, buckets: number, token: SearchToken, slice: number): void {
  // If the result is an integer too, V8 doesn't divide floating-point numbers, which takes five times as long.
  const start = (((token >>> 0) % (buckets >>> 0)) >>> 0) * BUCKET_BYTES
  const bits = bitsOf(token, slice)
  const step = stepOf(bits)
  const count = bitsSet(slice)
  let bit = bits
  for (let nth = 0; nth < count; nth += 1) {
    const at = start + ((bit & BIT_MASK) >>> 3)
    filter[at] = (filter[at] ?? 0) | (1 << (bit & 7))
    bit = (bit + step) | 0
  }
}

/** Whether a slice may have a token, given its bucket: number `(token >>> 0) % buckets` of the filter. */
export function bucketMayHave(bucket: Buffer, token: SearchToken, slice: number): boolean {
  assert.equal(bucket.length, BUCKET_BYTES)
  return hasBits(bucket, token, slice) || hasBits(bucket, token, ALL_SLICES)
}

function hasBits(bucket: Buffer, token: SearchToken, slice: number): boolean {
  const bits = bitsOf(token, slice)
  const step = stepOf(bits)
  const count = bitsSet(slice)
  let bit = bits
  for (let nth = 0; nth < count; nth += 1) {
    if (((bucket[(bit & BIT_MASK) >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false
    bit = (bit + step) | 0
  }
  return true
}

const BIT_MASK = BUCKET_BITS - 1

/** Mixes the token again, because its remainder already chose the bucket. */
function bitsOf(token: SearchToken, slice: number): number {
  const one = token ^ Math.imul(slice, 0x9e3779b1)
  const mixed = Math.imul(one ^ (one >>> 15), 0x2c1b3c6d)
  return mixed ^ (mixed >>> 12)
}

function bitsSet(slice: number): number {
  return slice === ALL_SLICES ? BITS_SET_FOR_ALL : BITS_SET
}

function stepOf(bits: number): number {
  return ((bits >>> 10) & BIT_MASK) | 1
}
