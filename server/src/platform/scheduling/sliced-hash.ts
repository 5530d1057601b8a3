import { createHash } from 'node:crypto'
import { rowSlice } from './row-cost.ts'

const BYTES_PER_STEP = 1_024 * 1_024

/** The SHA-256 of a large file in hex. Hashing yields to the event loop every few milliseconds. */
export async function sha256InSlices(bytes: Buffer): Promise<string> {
  const slice = rowSlice()
  await slice.next()
  const digest = createHash('sha256')
  for (let at = 0; at < bytes.length; at += BYTES_PER_STEP) {
    if (slice.isOver) await slice.next()
    digest.update(bytes.subarray(at, at + BYTES_PER_STEP))
  }
  return digest.digest('hex')
}
