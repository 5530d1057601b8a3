import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { rootOf } from '../../src/ledger/tree/merkle.ts'
import {
  readState,
  type SignedTree,
  stateKeyOf,
  writeState,
} from '../../src/outlet/proof/signer-state.ts'
import { deriveSeed, signCheckpoint, signingKeyOf } from '../../src/outlet/proof/signing-key.ts'
import { newId, type WorkspaceId } from '../../src/platform/id.ts'
import {
  type ObjectStore,
  REPLACED_BYTES_MAX,
} from '../../src/platform/object-store/object-store.ts'
import { Secret } from '../../src/platform/secret/secret.ts'
import { parseSecretKey } from '../../src/platform/secret/secret-key.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
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
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'

// An API node doesn't sign on its own, so the tests decide who signs when.
const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { archive } = annals.app
const run = (sql: string) => query(annals.database.connection, sql)

/** A new workspace with this many events. */
async function createChain(events: number): Promise<{ id: WorkspaceId; key: string }> {
  const { workspace, workspaceKey } = await annals.createCompany()
  await sendEvents(annals, workspaceKey, events)
  return { id: workspace.id, key: workspaceKey }
}

async function signed(id: WorkspaceId): Promise<{ size: number; root: string; note: string }> {
  const checkpoint = await readCheckpoint(annals, id)
  assert(checkpoint, 'a checkpoint is published')
  const { size, root } = openNote(checkpoint.note, checkpoint.vkey)
  assert.deepEqual([size, root], [checkpoint.size, checkpoint.root.toString('base64')])
  return { size, root, note: checkpoint.note }
}

const cutChain = (id: WorkspaceId, toSeq: number) => cutChainOf(annals, id, toSeq)

test('signs the RFC 6962 tree over the hashes of the events, and extends it', async () => {
  const { id, key } = await createChain(300)
  const signer = createSigner(annals)
  assert.equal(await signWhole(signer, id), 'done')
  const first = await signed(id)
  assert.deepEqual([first.size, first.root], [300, treeRoot(await readHashes(annals, id))])
  await sendEvents(annals, key, 5)
  assert.equal(await signWhole(createSigner(annals), id), 'done')
  const second = await signed(id)
  assert.deepEqual([second.size, second.root], [305, treeRoot(await readHashes(annals, id))])
  assert.equal((await readCheckpoint(annals, id))?.origin, `annals.local/${id}`)
})

test('a chain that is far behind is signed in steps with the same result', async () => {
  const { id } = await createChain(700)
  assert.equal(await signWhole(createSigner(annals, { stepEvents: 90 }), id), 'done')
  const { size, root } = await signed(id)
  assert.deepEqual([size, root], [700, treeRoot(await readHashes(annals, id))])
})

test('an empty workspace has a checkpoint of size 0', async () => {
  const { id } = await createChain(0)
  assert.equal(await createSigner(annals).sign(id), 'done')
  const { size, root } = await signed(id)
  assert.deepEqual([size, root], [0, '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='])
})

test('refuses a chain that is shorter than what was signed, and says so', async () => {
  const { id } = await createChain(20)
  const signer = createSigner(annals)
  await signWhole(signer, id)
  const before = await signed(id)
  await cutChain(id, 17)
  for (const one of [signer, createSigner(annals)]) {
    assert.equal(await one.sign(id), 'refused')
    assert.match(await readRefusal(annals, id), /has 17 events, but a checkpoint of 20/)
  }
  assert.deepEqual(await signed(id), before)
})

test('refuses a cut tail that new events have replaced', async () => {
  for (const added of [3, 10]) {
    const { id, key } = await createChain(20)
    await signWhole(createSigner(annals), id)
    const before = await signed(id)
    await cutChain(id, 17)
    await sendEvents(annals, key, added)
    assert.equal(await createSigner(annals).sign(id), 'refused')
    assert.match(await readRefusal(annals, id), /event (20 has the hash|21: prevHash is not)/)
    assert.deepEqual(await signed(id), before)
  }
})

test('refuses events whose fields were changed before they were signed', async () => {
  for (const change of [
    "category = 'other'",
    "ts = ts + interval '1 second'",
    "sealed = '{}'",
    "hash = sha256('x')",
    "prev_hash = sha256('x')",
  ]) {
    const { id } = await createChain(10)
    await run(`update event set ${change} where workspace_id = '${id}' and seq = 6`)
    assert.equal(await createSigner(annals).sign(id), 'refused', change)
    assert.match(await readRefusal(annals, id), /^event [67]: /, change)
    assert.equal(await readCheckpoint(annals, id), null)
  }
})

test('refuses a chain with a missing event', async () => {
  const { id } = await createChain(10)
  await run(`delete from event where workspace_id = '${id}' and seq = 1`)
  assert.equal(await createSigner(annals).sign(id), 'refused')
  assert.match(await readRefusal(annals, id), /event 1 of the chain is missing/)
})

test('refuses to start again when what it signed is missing or damaged', async () => {
  const { id, key } = await createChain(4)
  await signWhole(createSigner(annals), id)
  const stored = await archive.readTagged(stateKeyOf(id))
  assert(stored)
  await sendEvents(annals, key, 1)
  await archive.put(stateKeyOf(id), Buffer.from('{"version":1,"size":0}'))
  assert.equal(await createSigner(annals).sign(id), 'refused')
  await archive.delete(stateKeyOf(id))
  assert.equal(await createSigner(annals).sign(id), 'refused')
  assert.match(await readRefusal(annals, id), /has no object signer\//)
  await archive.put(stateKeyOf(id), stored.bytes)
  assert.equal(await signWhole(createSigner(annals), id), 'done')
  assert.deepEqual([(await signed(id)).size, await readRefusal(annals, id)], [5, ''])
})

/** What an attacker who can write only to the archive might want to have signed. */
const FORGERIES: Record<string, (state: SignedTree, other: SignedTree) => SignedTree> = {
  'another history of the same size': (state) => {
    const frontier = state.frontier.map(() => randomBytes(32))
    return { ...state, frontier, root: rootOf(frontier) }
  },
  'another history that is far behind': (state) => {
    const frontier = [randomBytes(32)]
    return { ...state, size: 1, frontier, root: rootOf(frontier) }
  },
  'another name of the ledger': (state) => ({ ...state, origin: `bank.example/${newId()}` }),
  'the state of another workspace': (_, other) => other,
  'a signature that someone else added': (state) => {
    const line = `— witness.example ${randomBytes(72).toString('base64')}\n`
    return { ...state, note: `${state.note}${line}` }
  },
  'another verifier key': (state, other) => ({ ...state, vkey: other.vkey }),
  'a note that someone else signed': (state) => {
    const seed = new Secret(randomBytes(32))
    return { ...state, note: signCheckpoint(state, [signingKeyOf(seed)]) }
  },
}

test('a state with an invalid time counts as damaged', async () => {
  const { id, key } = await createChain(4)
  await signWhole(createSigner(annals), id)
  await sendEvents(annals, key, 1)
  const stored = await archive.readTagged(stateKeyOf(id))
  assert(stored)
  const text = stored.bytes.toString().replace(/"signedAt": ?"[^"]*"/, '"signedAt":"garbage"')
  await archive.put(stateKeyOf(id), Buffer.from(text))
  assert.equal(await createSigner(annals).sign(id), 'refused')
  assert.match(await readRefusal(annals, id), /^the object signer\/\S+ in the archive is damaged$/)
  await archive.put(stateKeyOf(id), stored.bytes)
  assert.equal(await signWhole(createSigner(annals), id), 'done')
})

test('refuses to extend a tree that it has not signed', async () => {
  const other = await createChain(20)
  await signWhole(createSigner(annals), other.id)
  const { tree: otherTree } = await readState(archive, other.id)
  assert(otherTree)
  for (const [name, forge] of Object.entries(FORGERIES)) {
    const { id, key } = await createChain(20)
    await signWhole(createSigner(annals), id)
    const { object, tree } = await readState(archive, id)
    assert(object && tree)
    await sendEvents(annals, key, 3)
    const forged = writeState(forge(tree, otherTree))
    await archive.put(stateKeyOf(id), forged)
    assert.equal(await createSigner(annals, { stepEvents: 5 }).sign(id), 'refused', name)
    assert.match(await readRefusal(annals, id), /is not signed with a key of this service$/, name)
    assert.deepEqual((await archive.readTagged(stateKeyOf(id)))?.bytes, forged, name)
    await archive.put(stateKeyOf(id), object.bytes)
    assert.equal(await signWhole(createSigner(annals), id), 'done')
    assert.equal((await signed(id)).root, treeRoot(await readHashes(annals, id)))
  }
})

test('a forged history that a leaked key signed is neither published nor extended', async () => {
  const { id, key } = await createChain(20)
  await signWhole(createSigner(annals), id)
  const { object, tree } = await readState(archive, id)
  assert(object && tree)
  await sendEvents(annals, key, 3)
  const secretKey = parseSecretKey(SECRET_KEY)
  assert(secretKey)
  const leaked = signingKeyOf(deriveSeed(secretKey, 0))
  const frontier = tree.frontier.map(() => randomBytes(32))
  const forged = { ...tree, frontier, root: rootOf(frontier) }
  const bytes = writeState({ ...forged, note: signCheckpoint(forged, [leaked]) })
  await archive.put(stateKeyOf(id), bytes)
  const signer = createSigner(annals)
  while ((await signer.sign(id)) === 'more');
  assert.match(await readRefusal(annals, id), /are not those that were signed$/)
  assert.deepEqual((await archive.readTagged(stateKeyOf(id)))?.bytes, bytes)
  assert.equal((await signed(id)).note, tree.note)
  await archive.put(stateKeyOf(id), object.bytes)
  assert.equal(await signWhole(createSigner(annals), id), 'done')
})

test('an object that is too large counts as damaged, even if its start is valid', async () => {
  const { id, key } = await createChain(4)
  await signWhole(createSigner(annals), id)
  await sendEvents(annals, key, 1)
  const padding = Buffer.alloc(REPLACED_BYTES_MAX, ' ')
  const pad = async (name: string) => {
    const stored = await archive.readTagged(name)
    assert(stored)
    await archive.put(name, Buffer.concat([stored.bytes, padding]))
    return async () => await archive.put(name, stored.bytes)
  }
  const restoreState = await pad(stateKeyOf(id))
  assert.equal(await createSigner(annals).sign(id), 'refused')
  assert.match(await readRefusal(annals, id), /^the object signer\/\S+ in the archive is damaged$/)
  await restoreState()
  const keys = await archive.readTagged('signer/keys')
  await pad('signer/keys')
  assert.equal(await signWhole(createSigner(annals), id), 'done')
  assert.deepEqual(await archive.readTagged('signer/keys'), keys, 'the database has a copy')
})

test('of two signers that see different histories, the storage lets only one sign', async () => {
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
  await cutChain(id, 15)
  await sendEvents(annals, key, 5)
  assert.equal(await createSigner(annals).sign(id), 'done')
  const winner = await signed(id)
  resumed.resolve()
  assert.equal(await slowResult, 'overtaken')
  assert.equal(await slow.sign(id), 'done')
  assert.deepEqual(await signed(id), winner)
  assert.deepEqual([winner.size, winner.root], [20, treeRoot(await readHashes(annals, id))])
})

test('publishes what was signed when its node was killed before it could', async () => {
  const { id, key } = await createChain(30)
  await signWhole(createSigner(annals), id)
  await sendEvents(annals, key, 10)
  const killed: ObjectStore = {
    ...archive,
    replace: async (name, write, signal) => {
      const tag = await archive.replace(name, write, signal)
      if (name === stateKeyOf(id)) throw new Error('killed')
      return tag
    },
  }
  await assert.rejects(createSigner(annals, { archive: killed }).sign(id), /killed/)
  assert.equal((await signed(id)).size, 30)
  const { tree: kept } = await readState(archive, id)
  assert.equal(await signWhole(createSigner(annals), id), 'done')
  assert.deepEqual([(await signed(id)).size, (await signed(id)).note], [40, kept?.note])
})

test('archived events are in the tree, on an old database too', async () => {
  const { id, key } = await createChain(40)
  const hashes = await readHashes(annals, id)
  await archiveAll(annals)
  assert.equal((await readHashes(annals, id)).length, 0)
  await sendEvents(annals, key, 5)
  const all = [...hashes, ...(await readHashes(annals, id))]
  assert.equal(await signWhole(createSigner(annals, { stepEvents: 15 }), id), 'done')
  const { size, root } = await signed(id)
  assert.deepEqual([size, root], [45, treeRoot(all)])
})

test('rebuilds tiles that are missing or damaged, without signing again', async () => {
  const { id, key } = await createChain(600)
  await signWhole(createSigner(annals), id)
  const { note } = await signed(id)
  const tiles = `select level, number, hashes from tree_tile where workspace_id = '${id}' order by 1, 2`
  const before = await run(tiles)
  await run(`delete from tree_tile where workspace_id = '${id}'`)
  await run(`update checkpoint set tree_size = 0 where workspace_id = '${id}'`)
  assert.equal(await signWhole(createSigner(annals, { stepEvents: 100 }), id), 'done')
  assert.deepEqual([await run(tiles), (await signed(id)).note], [before, note])
  await run(`update tree_tile set hashes = sha256('x') where workspace_id = '${id}' and level = 1`)
  await sendEvents(annals, key, 1)
  assert.equal(await signWhole(createSigner(annals), id), 'done')
  const [leaf] = await run(tiles)
  assert.deepEqual(leaf, before[0])
  assert.equal((await signed(id)).root, treeRoot(await readHashes(annals, id)))
})

test('does not publish rebuilt tiles of a rewritten history', async () => {
  const { id, key } = await createChain(50)
  await signWhole(createSigner(annals), id)
  await cutChain(id, 20)
  await sendEvents(annals, key, 30)
  // The head that was signed, on a history that was not.
  const signedHash = (await readState(archive, id)).tree?.lastHash
  await run(`update chain_head set hash = '${signedHash}' where workspace_id = '${id}'`)
  await run(`update checkpoint set tree_size = 0 where workspace_id = '${id}'`)
  assert.equal(await signWhole(createSigner(annals, { stepEvents: 20 }), id), 'refused')
  assert.match(await readRefusal(annals, id), /its first 50 events are not those that were signed/)
})
