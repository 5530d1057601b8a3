import assert from 'node:assert/strict'
import { parentPort } from 'node:worker_threads'
import { readSegment, SegmentDamagedError } from '../../ledger/segment/segment-reader.ts'

/** The hashes of a segment's events, in order and 32 bytes each, or why they couldn't be computed. */
export type ReadBackResult = { ok: true; hashes: Uint8Array } | { ok: false; problem: string }

/** The worker thread of `read-back.ts`. Receives the bytes of a segment and sends one answer for each. */
parentPort?.on('message', (file: unknown) => {
  assert(file instanceof Uint8Array, 'a segment is bytes')
  void recompute(Buffer.from(file.buffer, file.byteOffset, file.byteLength)).then((answer) =>
    parentPort?.postMessage(answer, []),
  )
})

async function recompute(file: Buffer): Promise<ReadBackResult> {
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
