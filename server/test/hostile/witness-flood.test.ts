import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { addCheckpoint } from '../../src/outlet/proof/witness/add-checkpoint.ts'
import { signingKeyOf } from '../../src/outlet/proof/signing-key.ts'
import { Secret } from '../../src/platform/secret/secret.ts'
import { COSIGNATURE, noteKeyText } from '../../src/platform/tlog/signed-note.ts'
import { parseWitness } from '../../src/platform/tlog/witness-setting.ts'
import { FloodThread } from '../harness/webhook/flood-thread.ts'

const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
const FLOODS = [
  { first: '', piece: 'HTTP/1.1 102 Processing\r\n\r\n' },
  { first: CHUNKED, piece: `1;${'a'.repeat(65_000)}\r\nx\r\n` },
  { first: CHUNKED, piece: '0' },
  { first: 'HTTP/1.1 200 OK\r\n', piece: 'a:\r\n' },
  { first: `${CHUNKED}0\r\n`, piece: 'a:\r\n' },
]
const REQUESTS = 10
/** In CPU time of the thread, which doesn't depend on what else the machine does. */
const REQUEST_MS_MAX = 50

test('a witness that floods the service costs little per request', async () => {
  const { publicKey } = signingKeyOf(new Secret(randomBytes(32)))
  const vkey = noteKeyText({ name: 'witness.example', type: COSIGNATURE, publicKey })
  for (const flood of FLOODS) {
    await using hostile = await FloodThread.start(flood)
    const witness = parseWitness(`${new URL(hostile.url).origin} ${vkey}`)
    const before = process.threadCpuUsage()
    for (let nth = 0; nth < REQUESTS; nth += 1) {
      const checkpoint = { oldSize: 0, proof: [], note: 'a note\n' }
      const outcome = await addCheckpoint(witness, checkpoint, AbortSignal.timeout(10_000))
      const reason = 'The server sent more than 64 KiB.'
      assert.deepEqual(outcome, { kind: 'failed', reason })
    }
    const { user, system } = process.threadCpuUsage(before)
    const requestMs = (user + system) / 1_000 / REQUESTS
    assert(requestMs < REQUEST_MS_MAX, `${requestMs} ms per request: ${flood.piece.slice(0, 30)}`)
  }
})
