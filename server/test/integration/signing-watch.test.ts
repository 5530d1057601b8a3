import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { SigningWatch } from '../../src/outlet/proof/signing-watch.ts'
import { startSignerWorker } from '../../src/outlet/proof/signer-worker.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { systemClock } from '../../src/platform/time/clock.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import {
  createSigner,
  openNote,
  readCheckpoint,
  readHashes,
  sendEvents,
  signWhole,
  treeRoot,
} from '../harness/proof/proof.ts'
import { startTestApp } from '../harness/app/start-app.ts'

// Its signer runs only in the tests that start one.
let skippedMs = 0
const annals = await startTestApp({
  role: 'api',
  env: { ANNALS_RATE_LIMITS: 'off' },
  clock: systemClock,
  monotonic: () => performance.now() + skippedMs,
})
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

function createWatch() {
  const time = { nowMs: 0 }
  const ages: number[] = []
  const watch = new SigningWatch({
    db,
    signer: createSigner(annals),
    logger: createLogger('silent'),
    monotonic: () => time.nowMs,
    onChecked: (seconds) => ages.push(seconds),
  })
  const checkAfter = async (ms: number) => {
    time.nowMs += ms
    await watch.check()
    return ages.at(-1)
  }
  return { watch, checkAfter, [Symbol.asyncDispose]: () => watch[Symbol.asyncDispose]() }
}

async function createChain(events: number): Promise<{ id: WorkspaceId; key: string }> {
  const { workspace, workspaceKey } = await annals.createCompany()
  await sendEvents(annals, workspaceKey, events)
  return { id: workspace.id, key: workspaceKey }
}

test('events that stay unsigned are reported until they are signed', async () => {
  await using checked = createWatch()
  const { watch, checkAfter } = checked
  const { id, key } = await createChain(3)
  watch.noteStored([id], () => 3)
  assert.equal(await checkAfter(19_000), 0)
  assert.equal(await checkAfter(6_000), 25)
  await signWhole(createSigner(annals), id)
  assert.equal(await checkAfter(5_000), 0)
  // More events than were signed when the node looked.
  watch.noteStored([id], () => 3)
  await sendEvents(annals, key, 2)
  watch.noteStored([id], () => 5)
  assert.equal(await checkAfter(21_000), 0)
  assert.equal(await checkAfter(21_000), 21)
})

test('events are also reported while the storage with the keys is down', async () => {
  const ages: number[] = []
  let nowMs = 0
  await using watch = new SigningWatch({
    db,
    signer: { listKeys: () => Promise.reject(new Error('the storage is down')) },
    logger: createLogger('silent'),
    monotonic: () => nowMs,
    onChecked: (seconds) => ages.push(seconds),
  })
  const { id } = await createChain(1)
  watch.noteStored([id], () => 1)
  nowMs = 30_000
  await assert.rejects(watch.check(), /the storage is down/)
  assert.equal(ages.at(-1), 30)
})

test('a checkpoint that someone wrote into the database doesn’t count as signed', async () => {
  await using checked = createWatch()
  const { watch, checkAfter } = checked
  const [signed, { id }] = await Promise.all([createChain(9), createChain(4)])
  await signWhole(createSigner(annals), signed.id)
  watch.noteStored([id], () => 4)
  await query(
    annals.database.connection,
    `insert into checkpoint (workspace_id, tree_size, size, origin, root, note, vkey, signed_at)
     select '${id}', 0, size, origin, root, note, vkey, signed_at
       from checkpoint where workspace_id = '${signed.id}'`,
  )
  assert.equal(await checkAfter(21_000), 21)
  await query(
    annals.database.connection,
    `update checkpoint set origin = 'annals.local/${id}' where workspace_id = '${id}'`,
  )
  assert.equal(await checkAfter(1_000), 22)
})

test('a checkpoint that claims more than was signed doesn’t stop the signer', async () => {
  const { id, key } = await createChain(3)
  const signer = createSigner(annals)
  const logger = createLogger('silent')
  await using _worker = startSignerWorker({ db, signer, checkpointSeconds: 1, logger })
  const assertSigned = async (events: number) => {
    const checkpoint = await readCheckpoint(annals, id)
    assert(checkpoint)
    const { size, root } = openNote(checkpoint.note, checkpoint.vkey)
    assert.deepEqual([size, root], [events, treeRoot(await readHashes(annals, id))])
    assert.equal(checkpoint.size, events)
  }
  await eventually(() => assertSigned(3))
  // After its first pass, the worker compares all chains, and then only once per hour.
  const other = await createChain(1)
  await eventually(async () => assert(await readCheckpoint(annals, other.id)))
  await query(
    annals.database.connection,
    `update checkpoint set size = 1000000000000 where workspace_id = '${id}'`,
  )
  await sendEvents(annals, key, 2)
  await eventually(() => assertSigned(5))
})

test('a node watches the events that it stores', async () => {
  await createChain(1)
  skippedMs += 30_000
  await eventually(async () => {
    const { values } = await annals.app.metrics.unsignedAge.get()
    assert((values[0]?.value ?? 0) >= 30)
  })
})
