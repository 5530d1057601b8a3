import { writeSync } from 'node:fs'
import { Annals } from '../../../../sdk/src/index.ts'
import { diskSpool } from '../../../../sdk/src/node/disk-spool.ts'

/**
 * Records events with a disk spool until it is killed, and prints the key of each event that `record` has
 * accepted. The arguments are the address, the key, the folder, and a prefix for the keys.
 */
const [baseUrl = '', apiKey = '', folder = '', prefix = ''] = process.argv.slice(2)
const annals = new Annals({ apiKey, baseUrl })
const recorder = annals.recorder({ flushMs: 1, maxBatch: 20, spool: diskSpool({ folder }) })
const STEP = 10

for (let nth = 0; ; nth += 1) {
  const idempotencyKey = `${prefix}-${nth}`
  const event = { category: 'spool', action: idempotencyKey, idempotencyKey }
  // Not buffered, so that the parent sees each acknowledgment.
  if (recorder.record(event)) writeSync(1, `${idempotencyKey}\n`)
  // Lets the requests go on.
  if (nth % STEP === 0) await new Promise((resolve) => setImmediate(resolve))
}
