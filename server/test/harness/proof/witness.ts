import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Witness } from '../../../src/edge/witness/witness.ts'
import { signingKeyOf } from '../../../src/outlet/proof/signing-key.ts'
import { Secret } from '../../../src/platform/secret/secret.ts'
import { systemClock } from '../../../src/platform/time/clock.ts'
import { COSIGNATURE, noteKeyText } from '../../../src/platform/tlog/signed-note.ts'
import { parseWitness, type WitnessSetting } from '../../../src/platform/tlog/witness-setting.ts'
import { memoryStore } from '../archive/memory-store.ts'

/** Responds to a request in place of the witness. */
type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** A witness that a test can make fail. */
export type TestWitness = AsyncDisposable & {
  setting: WitnessSetting
  /** As in `ANNALS_WITNESSES`. */
  text: string
  /** The bodies of all requests. */
  bodies: string[]
  /** The statuses that the witness itself returned. */
  statuses: number[]
  /** If not null, this responds in place of the witness. */
  answer: Answer | null
}

/** Starts a real witness with its state in memory, behind a server that can respond in its place. */
export async function startTestWitness({
  logKey,
  name = 'witness.example',
}: {
  logKey: Buffer
  name?: string
}): Promise<TestWitness> {
  const key = signingKeyOf(new Secret(randomBytes(32)))
  const witness = new Witness({
    logKeys: [logKey],
    originPrefix: 'annals.local/',
    name,
    ...key,
    storage: memoryStore(),
    clock: systemClock,
  })
  const server = createServer((request, response) => void serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const vkey = noteKeyText({ name, type: COSIGNATURE, publicKey: key.publicKey })
  const setting = `http://127.0.0.1:${address.port} ${vkey}`
  const started: TestWitness = {
    setting: parseWitness(setting),
    text: setting,
    bodies: [],
    statuses: [],
    answer: null,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
  return started

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    started.bodies.push(body)
    if (started.answer !== null) return started.answer(request, response)
    assert.equal(`${request.method} ${request.url}`, 'POST /add-checkpoint')
    const answer = await witness.addCheckpoint(body)
    started.statuses.push(answer.status)
    response.writeHead(answer.status).end(answer.text)
  }
}
