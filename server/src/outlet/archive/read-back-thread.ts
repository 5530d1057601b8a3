import assert from 'node:assert/strict'
import { parentPort } from 'node:worker_threads'
import { readSegment, SegmentDamagedError } from '../../ledger/segment-reader.ts'

/** The hashes of a segment's events, 32 bytes each and in their order, or why there are none. */
export type ReadBackAnswer = { ok: true; hashes: Uint8Array } | { ok: false; problem: string }

/** The other end of `read-back.ts`: takes the bytes of a segment, and answers once for each. */
parentPort?.on('message', (file: unknown) => {
  assert(file instanceof Uint8Array, 'a segment is bytes')
  void recompute(Buffer.from(file.buffer, file.byteOffset, file.byteLength)).then((answer) =>
    parentPort?.postMessage(answer, []),
  )
})

async function recompute(file: Buffer): Promise<ReadBackAnswer> {
  const hashes: Buffer[] = []
  try {
    for await (const events of readSegment(file)) {
      hashes.push(Buffer.from(events.map(({ hash }) => hash).join(''), 'hex'))
    }
    return { ok: true, hashes: Buffer.concat(hashes) }
  } catch (error) {
    if (error instanceof SegmentDamagedError) return { ok: false, problem: error.message }
    throw error
  }
}
