import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import {
  type WitnessSenderOptions,
  WitnessSender,
} from '../../src/outlet/proof/witness/witness-sender.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import {
  checkNoteSignature,
  LOG_SIGNATURE,
  noteKeyText,
  parseCheckpoint,
} from '../../src/platform/tlog/signed-note.ts'
import { query } from '../harness/database/engine.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { createSigner, publicKeyOf, sendEvents, signWhole } from '../harness/proof/proof.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { runVerifier, temporaryFiles } from '../harness/proof/verifier.ts'
import { startTestWitness, type TestWitness } from '../harness/proof/witness.ts'

// An API node neither signs nor sends on its own, so the tests decide who does.
const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const signer = createSigner(annals)
const logKey = await publicKeyOf(signer)
const logger = createLogger('silent')
const writeTemporary = temporaryFiles()
const run = (sql: string) => query(annals.database.connection, sql)

type Chain = { id: WorkspaceId; key: string }

/** Only this chain has a checkpoint, so that the witnesses of the test get no others. */
async function createSigned(events: number): Promise<Chain> {
  const { workspace, workspaceKey: key } = await annals.createCompany()
  await sendEvents(annals, key, events)
  await signWhole(signer, workspace.id)
  await run(`delete from checkpoint where workspace_id <> '${workspace.id}'`)
  return { id: workspace.id, key }
}

/** A sender whose clock the test moves, so that it can wait for retries. */
function startSender({ setting }: TestWitness, options: Partial<WitnessSenderOptions> = {}) {
  let nowMs = 0
  const results: string[] = []
  const sender = new WitnessSender({
    db,
    witness: setting,
    isSigning: () => true,
    logger,
    monotonic: () => nowMs,
    onResult: (result) => results.push(result),
    ...options,
  })
  return {
    results,
    sender,
    /** Waits for the next result. */
    next: async (waitMs = 0) => {
      const before = results.length
      nowMs += waitMs
      await eventually(async () => {
        await sender.wake()
        assert(results.length > before, 'the sender has a result')
      })
      return results.at(-1)
    },
    /** Waits, and expects that the sender sends nothing. */
    idle: async (waitMs: number) => {
      const before = results.length
      nowMs += waitMs
      await sender.wake()
      assert.equal(results.length, before, 'the sender waits')
    },
    [Symbol.asyncDispose]: () => sender[Symbol.asyncDispose](),
  }
}

const getNote = async ({ id, key }: Chain, path = 'checkpoint') =>
  (await annals.call('GET', `/v1/workspaces/${id}/${path}`, { key })).text

async function verdictOf(chain: Chain, { setting }: TestWitness) {
  const checkpoint = parseCheckpoint(await getNote(chain))
  assert(checkpoint)
  return { size: checkpoint.size, verdict: checkNoteSignature(checkpoint, setting.key) }
}

test('serves checkpoints and proofs with the cosignatures of all witnesses', async () => {
  await using first = await startTestWitness({ logKey, name: 'a.example' })
  await using second = await startTestWitness({ logKey, name: 'b.example' })
  const chain = await createSigned(300)
  const signed = await getNote(chain)
  await using one = startSender(first)
  await using other = startSender(second)
  assert.deepEqual([await one.next(), await other.next()], ['cosigned', 'cosigned'])
  for (const witness of [first, second]) {
    assert.deepEqual(await verdictOf(chain, witness), { size: 300, verdict: 'valid' })
  }
  const note = await getNote(chain)
  assert.equal(note.slice(0, signed.length), signed)
  assert.equal(await getNote(chain, 'tlog/checkpoint'), note)
  const { json } = await annals.call('GET', '/v1/events?limit=1', { key: chain.key })
  const path = `/v1/events/${json.data[0].id}/proof`
  const { json: proof } = await annals.call('GET', path, { key: chain.key })
  assert.equal(proof.checkpoint, note)
})

test('a forged cosignature in the database is not served, and hides no other', async () => {
  await using witness = await startTestWitness({ logKey, name: 'a.example' })
  await using victim = await startTestWitness({ logKey, name: 'b.example' })
  const chain = await createSigned(3)
  await using sending = startSender(witness)
  assert.equal(await sending.next(), 'cosigned')
  const note = await getNote(chain)
  const [line = assert.fail()] = note.split('\n').slice(-2)
  const logVkey = noteKeyText({ name: 'b.example', type: LOG_SIGNATURE, publicKey: logKey })
  await run(`
    insert into cosignature (workspace_id, witness, size, root, line)
    select workspace_id, '${logVkey}', size, root, '${note.split('\n')[4]}\n' from checkpoint
     where workspace_id = '${chain.id}'`)
  assert.equal(await getNote(chain), note)
  for (const forged of [
    line.replace('a.example', 'b.example'),
    line,
    '— b.example AAAA',
    'text',
    '',
  ]) {
    await run(`
      insert into cosignature (workspace_id, witness, size, root, line)
      select workspace_id, '${victim.setting.vkey}', size, root, '${forged}\n' from checkpoint
       where workspace_id = '${chain.id}'
      on conflict (workspace_id, witness) do update set line = excluded.line`)
    assert.equal(await getNote(chain), note, forged)
    assert.equal(await getNote(chain, 'tlog/checkpoint'), note, forged)
  }
})

test('a newer checkpoint is served without old cosignatures, and gets new ones with a proof', async () => {
  await using witness = await startTestWitness({ logKey })
  const chain = await createSigned(5)
  await using sending = startSender(witness)
  assert.equal(await sending.next(), 'cosigned')
  await sendEvents(annals, chain.key, 295)
  await signWhole(signer, chain.id)
  assert.deepEqual(await verdictOf(chain, witness), { size: 300, verdict: 'missing' })
  assert.equal(await sending.next(), 'cosigned')
  assert.deepEqual(await verdictOf(chain, witness), { size: 300, verdict: 'valid' })
  assert.deepEqual(witness.statuses, [200, 200])
  assert.match(witness.bodies[1] ?? '', /^old 5\n(?:[A-Za-z0-9+/]{43}=\n){2,}\nannals\.local\//)
})

test('gets the size from the witness if the database has lost it', async () => {
  await using witness = await startTestWitness({ logKey })
  const chain = await createSigned(40)
  await using sending = startSender(witness)
  await sending.next()
  await run(`delete from cosignature where workspace_id = '${chain.id}'`)
  await sendEvents(annals, chain.key, 3)
  await signWhole(signer, chain.id)
  assert.equal(await sending.next(), 'cosigned')
  assert.deepEqual(witness.statuses, [200, 409, 200])
  assert.deepEqual(await verdictOf(chain, witness), { size: 43, verdict: 'valid' })
})

test('a witness that has seen another history refuses, and is not retried at once', async () => {
  await using witness = await startTestWitness({ logKey })
  const chain = await createSigned(4)
  await using sending = startSender(witness)
  for (const size of ['9007199254740991', '5', '0']) {
    witness.answer = (_, response) => response.writeHead(409).end(`${size}\n`)
    assert.equal(await sending.next(3_600_000), 'refused', size)
  }
  const asked = witness.bodies.length
  await sending.sender.wake()
  assert.equal(witness.bodies.length, asked)
  witness.answer = null
  await using fresh = startSender(witness)
  assert.equal(await fresh.next(), 'cosigned')
  assert.equal(witness.bodies.length, asked + 1)
  assert.deepEqual(await verdictOf(chain, witness), { size: 4, verdict: 'valid' })
})

/** What a hostile or broken witness can return. */
const FAULTS: Record<string, (response: ServerResponse) => void> = {
  'an error': (response) => response.writeHead(500).end('no'),
  'a redirect': (response) => response.writeHead(307, { location: '/add-checkpoint' }).end(),
  garbage: (response) => response.end(Buffer.alloc(4_000, 0xff)),
  'the signature of another key': (response) =>
    response.end(`— witness.example ${Buffer.alloc(76, 1).toString('base64')}\n`),
  'an endless body': (response) => {
    const write = (): void => {
      while (!response.destroyed && response.write('x'.repeat(10_000)));
    }
    response.on('drain', write).on('error', () => {})
    write()
  },
  'an impossible size': (response) => response.writeHead(409).end('-1\n'),
  'a broken connection': (response) => response.destroy(),
}

for (const [name, answer] of Object.entries(FAULTS)) {
  test(`a witness that returns ${name} is retried later`, async () => {
    await using witness = await startTestWitness({ logKey })
    const chain = await createSigned(3)
    witness.answer = (_, response) => answer(response)
    await using sending = startSender(witness)
    assert.equal(await sending.next(), 'failed')
    assert.deepEqual(await verdictOf(chain, witness), { size: 3, verdict: 'missing' })
    await sending.sender.wake()
    assert.equal(witness.bodies.length, 1)
    assert.equal(await sending.next(1_000), 'failed')
    assert.equal(witness.bodies.length, 2)
    witness.answer = null
    assert.equal(await sending.next(2_000), 'cosigned')
    assert.deepEqual(await verdictOf(chain, witness), { size: 3, verdict: 'valid' })
  })
}

test('a witness that fails every other request is retried less and less often', async () => {
  await using witness = await startTestWitness({ logKey })
  const chain = await createSigned(1)
  const fail = (_: unknown, response: ServerResponse) => response.writeHead(500).end()
  const extend = async () => {
    await sendEvents(annals, chain.key, 1)
    await signWhole(signer, chain.id)
  }
  await using sending = startSender(witness)
  for (const waitMs of [1_000, 2_000, 4_000, 8_000, 16_000]) {
    witness.answer = fail
    assert.equal(await sending.next(), 'failed')
    await sending.idle(waitMs - 1)
    witness.answer = null
    assert.equal(await sending.next(1), 'cosigned')
    await extend()
  }
  for (let nth = 0; nth < 4; nth += 1) {
    assert.equal(await sending.next(), 'cosigned')
    await extend()
  }
  // It has cosigned five in a row, so its failures are forgotten.
  witness.answer = fail
  assert.equal(await sending.next(), 'failed')
  assert.equal(await sending.next(1_000), 'failed')
})

test('a witness that never responds does not delay signing, events or shutdown', async () => {
  await using witness = await startTestWitness({ logKey })
  const chain = await createSigned(2)
  const asked = Promise.withResolvers<void>()
  witness.answer = () => asked.resolve()
  const hanging = startSender(witness, { requestMsMax: 600_000 })
  const hangingRun = hanging.sender.wake()
  await asked.promise
  await sendEvents(annals, chain.key, 5)
  assert.equal(await signWhole(signer, chain.id), 'done')
  await within(5_000, hanging[Symbol.asyncDispose]())
  await hangingRun
  await using impatient = startSender(witness, { requestMsMax: 50 })
  assert.equal(await impatient.next(), 'failed')
})

test('a node that does not sign sends nothing', async () => {
  await using witness = await startTestWitness({ logKey })
  await createSigned(2)
  let isSigning = false
  await using sending = startSender(witness, { isSigning: () => isSigning })
  await sending.sender.wake()
  assert.equal(witness.bodies.length, 0)
  isSigning = true
  assert.equal(await sending.next(), 'cosigned')
})

test('of several nodes with witnesses, only the one that signs sends each checkpoint', async () => {
  await using witness = await startTestWitness({ logKey })
  const env = { ANNALS_WITNESSES: witness.text, ANNALS_CHECKPOINT_SECONDS: '1' }
  await using first = await startTestApp({ env })
  const { url } = first.database
  const archive = { ANNALS_ARCHIVE_URL: first.archiveUrl }
  await using _second = await startTestApp({ databaseUrl: url, env: { ...env, ...archive } })
  const { workspace, workspaceKey: key } = await first.createCompany()
  await sendEvents(first, key, 10)
  await eventually(async () => {
    const { text } = await first.call('GET', `/v1/workspaces/${workspace.id}/checkpoint`, { key })
    const checkpoint = parseCheckpoint(text)
    assert(checkpoint)
    assert.equal(checkpoint.size, 10)
    assert.equal(checkNoteSignature(checkpoint, witness.setting.key), 'valid')
  })
  const own = witness.bodies.filter((body) => body.includes(workspace.id))
  assert.equal(new Set(own).size, own.length, 'no checkpoint is sent twice')
})

test('the verifier names the witnesses whose keys it is given, and ignores the others', async () => {
  await using witness = await startTestWitness({ logKey })
  const chain = await createSigned(6)
  await using sending = startSender(witness)
  assert.equal(await sending.next(), 'cosigned')
  const { json } = await annals.call('GET', `/v1/workspaces/${chain.id}/checkpoint`, {
    key: chain.key,
    headers: { accept: 'application/json' },
  })
  const file = writeTemporary('checkpoint.txt', json.note)
  const check = (...keys: string[]) =>
    runVerifier(['checkpoint', file, ...keys.flatMap((key) => ['--vkey', key])])
  const plain = check(json.vkey)
  assert.equal(plain.code, 0, plain.err)
  assert.doesNotMatch(plain.out, /The witness/)
  const both = check(json.vkey, witness.setting.vkey)
  assert.equal(both.code, 0, both.err)
  assert.match(both.out, /The witness witness\.example saw this ledger at 20/)
})
