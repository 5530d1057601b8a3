import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { EMPTY_HEAD } from '../../src/ledger/event.ts'
import { readHead } from '../../src/ledger/event-store.ts'
import { SigningWatch } from '../../src/outlet/proof/signing-watch.ts'
import { startSignerWorker } from '../../src/outlet/proof/signer-worker.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { systemClock } from '../../src/platform/time/clock.ts'
import { lockTable } from '../harness/database/backup.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import {
  createSigner,
  cutChainOf,
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

function createWatch(options: Partial<ConstructorParameters<typeof SigningWatch>[0]> = {}) {
  const time = { nowMs: 0 }
  const ages: number[] = []
  const watch = new SigningWatch({
    db,
    signer: createSigner(annals),
    logger: createLogger('silent'),
    monotonic: () => time.nowMs,
    onChecked: (seconds) => ages.push(seconds),
    ...options,
  })
  const checkAfter = async (ms: number) => {
    time.nowMs += ms
    await watch.check()
    return ages.at(-1)
  }
  /** Like the writer, which knows what it has appended to. */
  const sendAndNote = async ({ id, key }: Chain, count: number) => {
    const from = (await readHead(db, id)) ?? EMPTY_HEAD
    await sendEvents(annals, key, count)
    const to = await readHead(db, id)
    assert(to)
    watch.noteMoved({ workspaceId: id, from, to })
  }
  const dispose = () => watch[Symbol.asyncDispose]()
  return { watch, time, ages, checkAfter, sendAndNote, [Symbol.asyncDispose]: dispose }
}

type Chain = { id: WorkspaceId; key: string }

async function createChain(events = 0): Promise<Chain> {
  const { workspace, workspaceKey } = await annals.createCompany()
  await sendEvents(annals, workspaceKey, events)
  return { id: workspace.id, key: workspaceKey }
}

const change = (statement: string) => query(annals.database.connection, statement)

test('events that stay unsigned are reported until they are signed', async () => {
  await using watched = createWatch()
  const { checkAfter, sendAndNote } = watched
  const chain = await createChain()
  await sendAndNote(chain, 3)
  assert.equal(await checkAfter(19_000), 0)
  assert.equal(await checkAfter(6_000), 25)
  await signWhole(createSigner(annals), chain.id)
  assert.equal(await checkAfter(5_000), 0)
  // More events than were signed when the node looked.
  await sendAndNote(chain, 1)
  await signWhole(createSigner(annals), chain.id)
  await sendAndNote(chain, 2)
  await sendAndNote(chain, 2)
  assert.equal(await checkAfter(21_000), 0)
  assert.equal(await checkAfter(21_000), 21)
  await signWhole(createSigner(annals), chain.id)
  assert.equal(await checkAfter(1_000), 0)
})

test('events are also reported while the storage with the keys is down', async () => {
  const listKeys = () => Promise.reject(new Error('the storage is down'))
  await using watched = createWatch({ signer: { listKeys } })
  const { watch, time, ages, sendAndNote } = watched
  await sendAndNote(await createChain(), 1)
  time.nowMs = 30_000
  await assert.rejects(watch.check(), /the storage is down/)
  assert.equal(ages.at(-1), 30)
})

test('events are also reported while someone locks the checkpoints', async () => {
  await using watched = createWatch({ checkMsMax: 200 })
  const { watch, time, ages, checkAfter, sendAndNote } = watched
  const chain = await createChain()
  await sendAndNote(chain, 1)
  await signWhole(createSigner(annals), chain.id)
  {
    await using lock = await lockTable(annals.database, 'checkpoint')
    time.nowMs = 30_000
    await assert.rejects(watch.check(), /could not be checked within 200 ms/)
    assert.equal(ages.at(-1), 30)
    await lock.waiting('select')
    // It doesn't take a second connection while the first one waits.
    assert.equal(await checkAfter(5_000), 35)
    await lock.waiting('select')
  }
  await eventually(async () => assert.equal(await checkAfter(0), 0))
})

test('a checkpoint that can’t be read doesn’t hide other chains', async () => {
  await using watched = createWatch()
  const { checkAfter, sendAndNote } = watched
  const [older, damaged] = [await createChain(), await createChain()]
  await sendAndNote(older, 1)
  await checkAfter(1_000)
  await sendAndNote(damaged, 1)
  for (const { id } of [older, damaged]) await signWhole(createSigner(annals), id)
  await change(`update checkpoint set signed_at = 'infinity', size = ${2n ** 62n}
                 where workspace_id = '${damaged.id}'`)
  assert.equal(await checkAfter(29_000), 29)
})

test('events that were deleted before they were signed are reported, although others have their numbers', async () => {
  await using watched = createWatch()
  const { checkAfter, sendAndNote } = watched
  const chain = await createChain(2)
  await sendAndNote(chain, 1)
  await sendAndNote(chain, 2)
  await cutChainOf(annals, chain.id, 3)
  await sendAndNote(chain, 5)
  assert.equal(await signWhole(createSigner(annals), chain.id), 'done')
  assert.equal((await readCheckpoint(annals, chain.id))?.size, 8)
  await checkAfter(21_000)
  assert.equal(await checkAfter(21_000), 21)
})

test('a checkpoint that someone wrote into the database doesn’t count as signed', async () => {
  await using watched = createWatch()
  const { checkAfter, sendAndNote } = watched
  const [signed, chain] = [await createChain(9), await createChain()]
  const { id } = chain
  await signWhole(createSigner(annals), signed.id)
  await sendAndNote(chain, 4)
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
