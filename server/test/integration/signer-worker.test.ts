import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { SignOutcome } from '../../src/outlet/proof/signer.ts'
import { startSignerWorker } from '../../src/outlet/proof/signer-worker.ts'
import { claimSignerLease, releaseSignerLease } from '../../src/outlet/proof/signer-lease-store.ts'
import { stateKeyOf } from '../../src/outlet/proof/signer-state.ts'
import { newId, type WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { type ObjectStore, StorageError } from '../../src/platform/object-store/object-store.ts'
import { openBucket } from '../harness/archive/bucket.ts'
import { query } from '../harness/database/engine.ts'
import { eventually, eventuallyWithin } from '../harness/timing/eventually.ts'
import {
  createSigner,
  cutChainOf,
  openNote,
  readCheckpoint,
  readHashes,
  readRefusal,
  sendEvents,
  signWhole,
  treeRoot,
} from '../harness/proof/proof.ts'
import { startTestApp } from '../harness/app/start-app.ts'

await using stack = new AsyncDisposableStack()
const s3 = await openBucket(stack)
const env = { ...s3.env, ANNALS_RATE_LIMITS: 'off' }
const annals = stack.use(await startTestApp({ role: 'api', env }))
const kept = stack.move()
after(() => kept.disposeAsync())
const { archive } = annals.app
const { db } = annals.app.database
const logger = createLogger('silent')

async function createChain(events: number): Promise<{ id: WorkspaceId; key: string }> {
  const { workspace, workspaceKey } = await annals.createCompany()
  await sendEvents(annals, workspaceKey, events)
  return { id: workspace.id, key: workspaceKey }
}

async function assertSigned(id: WorkspaceId, events: number): Promise<void> {
  const checkpoint = await readCheckpoint(annals, id)
  assert(checkpoint)
  const { size, root } = openNote(checkpoint.note, checkpoint.vkey)
  assert.deepEqual([size, root], [events, treeRoot(await readHashes(annals, id))])
}

/** Both signers of a fight, each with a storage that counts the trees it gets signed. */
function createFighters() {
  const trees = new Map<string, Set<string>>()
  const counting: ObjectStore = {
    ...archive,
    replace: async (name, write, signal) => {
      const tag = await archive.replace(name, write, signal)
      if (tag !== null && name !== 'signer/keys' && name !== 'signer/conditional-writes') {
        const { size, root } = JSON.parse(write.bytes.toString())
        const place = `${name} ${size}`
        trees.set(place, (trees.get(place) ?? new Set()).add(root))
      }
      return tag
    },
  }
  const fighters = [0, 1].map(() => createSigner(annals, { archive: counting, stepEvents: 7 }))
  return { trees, fighters }
}

test('a worker signs new events of all chains, and the whole chain of an old database', async () => {
  const chains = await Promise.all([createChain(3), createChain(40), createChain(1)])
  const signer = createSigner(annals, { stepEvents: 16 })
  await using _worker = startSignerWorker({ db, signer, checkpointSeconds: 1, logger })
  for (const [nth, count] of [3, 40, 1].entries()) {
    const { id = assert.fail() } = chains[nth] ?? {}
    await eventually(() => assertSigned(id, count))
  }
  const [, { id, key }] = chains
  await sendEvents(annals, key, 2)
  await eventuallyWithin(1_500, () => assertSigned(id, 42))
})

test('two signers that fight never sign two trees of one size', async () => {
  const { id, key } = await createChain(1)
  const { trees, fighters } = createFighters()
  for (let round = 0; round < 8; round += 1) {
    await sendEvents(annals, key, 10)
    const outcomes = await Promise.all(
      fighters.flatMap((signer) => [signer.sign(id), signer.sign(id)]),
    )
    assert(outcomes.every((outcome) => outcome !== 'refused'))
  }
  for (const signer of fighters) await signWhole(signer, id)
  assert(trees.size > 8)
  for (const [place, roots] of trees) assert.equal(roots.size, 1, place)
  await signWhole(createSigner(annals), id)
  await assertSigned(id, 81)
})

test('of two signers that see different histories, S3 lets only one sign', async () => {
  const { id, key } = await createChain(20)
  const entered = Promise.withResolvers<void>()
  const resumed = Promise.withResolvers<void>()
  const paused: ObjectStore = {
    ...archive,
    replace: async (name, write, signal) => {
      if (name === stateKeyOf(id)) {
        entered.resolve()
        await resumed.promise
      }
      return await archive.replace(name, write, signal)
    },
  }
  const slow = createSigner(annals, { archive: paused })
  const slowResult = slow.sign(id)
  await entered.promise
  await cutChainOf(annals, id, 15)
  await sendEvents(annals, key, 5)
  assert.equal(await createSigner(annals).sign(id), 'done')
  const winner = await archive.readTagged(stateKeyOf(id))
  resumed.resolve()
  assert.equal(await slowResult, 'overtaken')
  assert.deepEqual(await archive.readTagged(stateKeyOf(id)), winner)
  await assertSigned(id, 20)
})

test('refuses a rolled-back database also if S3 has what was signed', async () => {
  const { id } = await createChain(12)
  await signWhole(createSigner(annals), id)
  await cutChainOf(annals, id, 9)
  await query(
    annals.database.connection,
    `update checkpoint set size = 8 where workspace_id = '${id}'`,
  )
  const signer = createSigner(annals)
  let refused = 0
  const onRefusedCount = (count: number) => void (refused = count)
  const options = { db, signer, checkpointSeconds: 1, logger, onRefusedCount }
  await using _worker = startSignerWorker(options)
  await eventually(async () => {
    assert.match(await readRefusal(annals, id), /has 9 events, but a checkpoint of 12/)
    assert.equal(refused, 1)
  })
})

test('signs nothing if the storage ignores conditions', async () => {
  const { id } = await createChain(2)
  s3.ignoresConditions = true
  try {
    await assert.rejects(createSigner(annals).sign(id), StorageError)
  } finally {
    s3.ignoresConditions = false
  }
  assert.equal(await archive.readTagged(stateKeyOf(id)), null)
  assert.equal(await readCheckpoint(annals, id), null)
})

test('one node has the lease, until it expires or is released', async () => {
  const [first, second] = [newId<'signer'>(), newId<'signer'>()]
  await query(annals.database.connection, 'delete from signer_lease')
  assert(await claimSignerLease(db, { holder: first, leaseMs: 60_000 }))
  assert(await claimSignerLease(db, { holder: first, leaseMs: 60_000 }))
  assert.equal(await claimSignerLease(db, { holder: second, leaseMs: 60_000 }), false)
  await releaseSignerLease(db, second)
  assert.equal(await claimSignerLease(db, { holder: second, leaseMs: 60_000 }), false)
  await releaseSignerLease(db, first)
  assert(await claimSignerLease(db, { holder: second, leaseMs: 0 }))
  assert(await claimSignerLease(db, { holder: first, leaseMs: 60_000 }))
})

test('another node takes over within 15 seconds when the signer’s node dies', async () => {
  const { id } = await createChain(5)
  await query(annals.database.connection, 'delete from signer_lease')
  // What a killed node leaves behind: a lease that was renewed just before.
  assert(await claimSignerLease(db, { holder: newId(), leaseMs: 10_000 }))
  const signer = createSigner(annals)
  await using _worker = startSignerWorker({ db, signer, checkpointSeconds: 5, logger })
  await eventuallyWithin(15_000, () => assertSigned(id, 5))
})

test('does not skip a pass if a timer fires early', async () => {
  const { id } = await createChain(1)
  await query(annals.database.connection, 'delete from signer_lease')
  const intervalMs = 400
  const passesAtMs: number[] = []
  const signer = {
    currentKey: async () => '',
    sign: async (workspaceId: WorkspaceId): Promise<SignOutcome> => {
      if (workspaceId === id) passesAtMs.push(performance.now())
      return 'done'
    },
  }
  // Slower than the timers, so that each of them is early.
  const monotonic = (): number => performance.now() * 0.99
  const checkpointSeconds = intervalMs / 1_000 / 0.8
  await using _worker = startSignerWorker({ db, signer, checkpointSeconds, logger, monotonic })
  await eventually(() => assert(passesAtMs.length >= 5))
  const gapsMs = passesAtMs.slice(1).map((atMs, nth) => atMs - (passesAtMs[nth] ?? 0))
  // A busy machine can delay some of them.
  assert(Math.min(...gapsMs) < 1.5 * intervalMs, gapsMs.join(', '))
})

test('a node that can’t sign leaves it to another one', async () => {
  const { id } = await createChain(3)
  await query(annals.database.connection, 'delete from signer_lease')
  const failing = {
    currentKey: async () => '',
    sign: async (): Promise<SignOutcome> => {
      throw new StorageError('No access.')
    },
  }
  const options = { db, checkpointSeconds: 1, logger }
  await using _first = startSignerWorker({ ...options, signer: failing })
  await eventually(async () => {
    const [lease] = await query(annals.database.connection, 'select holder from signer_lease')
    assert(lease)
  })
  await using _second = startSignerWorker({ ...options, signer: createSigner(annals) })
  await eventuallyWithin(15_000, () => assertSigned(id, 3))
})
