import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { TreeCheck } from '../../src/outlet/proof/check-tree.ts'
import { stateKeyOf } from '../../src/outlet/proof/signer-state.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import {
  type ObjectStore,
  REPLACED_BYTES_MAX,
} from '../../src/platform/object-store/object-store.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
import { createSigner, cutChainOf, sendEvents, signWhole } from '../harness/proof/proof.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'

// An API node doesn't sign on its own, so the tests decide who signs when.
const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { archive, database } = annals.app
const { db } = database
const run = (sql: string) => query(annals.database.connection, sql)

async function createSigned(events: number): Promise<{ id: WorkspaceId; key: string }> {
  const { workspace, workspaceKey: key } = await annals.createCompany()
  await sendEvents(annals, key, events)
  await signWhole(createSigner(annals), workspace.id)
  return { id: workspace.id, key }
}

/** What `annals verify` finds in the tree of an intact chain. */
async function problemOf(workspaceId: WorkspaceId, store: ObjectStore | null = archive) {
  const listKeys = () => createSigner(annals).listKeys()
  const tree = await TreeCheck.open({ db, archive: store, workspaceId, listKeys })
  const verdict = await verifyChain(database, archive, workspaceId, {
    hashes: tree,
    eventsPerRead: 100,
  })
  assert(verdict.ok)
  return { problem: await tree.finish(), isSigned: tree.isSigned }
}

const FINE = { problem: null, isSigned: true }

test('trees of all sizes match their chains, while new events wait for the signer', async () => {
  for (const size of [0, 1, 255, 256, 257, 700]) {
    const { id, key } = await createSigned(size)
    assert.deepEqual(await problemOf(id), FINE, `${size} events`)
    await sendEvents(annals, key, 3)
    assert.deepEqual(await problemOf(id), FINE, `${size} events and more`)
  }
})

test('the tree of an archived chain matches it', async () => {
  const { id, key } = await createSigned(300)
  await archiveAll(annals)
  await sendEvents(annals, key, 10)
  await signWhole(createSigner(annals), id)
  assert.deepEqual(await problemOf(id), FINE)
})

test('a chain that is not signed has nothing to compare', async () => {
  const { workspace } = await annals.createCompany()
  assert.deepEqual(await problemOf(workspace.id), { problem: null, isSigned: false })
})

/** Each change, and what verification says about a tree of 600 events. */
const CHANGES: [name: string, change: (id: WorkspaceId) => Promise<unknown>, problem: RegExp][] = [
  [
    'a full tile',
    (id) =>
      run(`update tree_tile set hashes = set_byte(hashes, 39, 255 - get_byte(hashes, 39))
            where workspace_id = '${id}' and level = 0 and number = 1`),
    /^tile 1 of level 0 differs from the events$/,
  ],
  [
    'the tile at the edge',
    (id) =>
      run(`update tree_tile set hashes = set_byte(hashes, 39, 255 - get_byte(hashes, 39))
            where workspace_id = '${id}' and level = 0 and number = 2`),
    /^tile 2 of level 0 differs from the events$/,
  ],
  [
    'a tile that is too short',
    (id) =>
      run(`update tree_tile set hashes = substring(hashes from 1 for 32)
            where workspace_id = '${id}' and level = 1`),
    /^tile 0 of level 1 differs from the events$/,
  ],
  [
    'a missing tile',
    (id) => run(`delete from tree_tile where workspace_id = '${id}' and number = 0 and level = 0`),
    /^tile 0 of level 0 is missing$/,
  ],
  [
    'the published root',
    (id) => run(`update checkpoint set root = sha256('x') where workspace_id = '${id}'`),
    /^the published checkpoint doesn't match the first 600 events$/,
  ],
  [
    'the published note',
    (id) =>
      run(`update checkpoint set note = replace(note, E'\\n600\\n', E'\\n599\\n')
            where workspace_id = '${id}'`),
    /^the note of the published checkpoint doesn't match its size and root$/,
  ],
  [
    'the published signature',
    (id) =>
      run(`update checkpoint set note = regexp_replace(note, '(— \\S+ .{30}).', '\\1A')
            where workspace_id = '${id}'`),
    /^the published checkpoint has no valid signature by a key of this service$/,
  ],
  [
    'the size that is published',
    (id) => run(`update checkpoint set size = 700 where workspace_id = '${id}'`),
    /^the published checkpoint has 700 events, but the chain has 600$/,
  ],
  [
    'a cut tail',
    (id) => cutChainOf(annals, id, 590),
    /^the checkpoint in the archive has 600 events, but the chain has 590$/,
  ],
  [
    'a lost object',
    (id) => archive.delete(stateKeyOf(id)),
    /^the object signer\/\S+ in the archive is missing$/,
  ],
  [
    'a damaged object',
    (id) => archive.put(stateKeyOf(id), Buffer.from('{}')),
    /^the object signer\/\S+ in the archive is damaged$/,
  ],
  [
    'a large object',
    async (id) => {
      const state = await archive.readTagged(stateKeyOf(id))
      const padding = Buffer.alloc(REPLACED_BYTES_MAX, ' ')
      await archive.put(stateKeyOf(id), Buffer.concat([state?.bytes ?? padding, padding]))
    },
    /^the object signer\/\S+ in the archive is damaged$/,
  ],
]

for (const [name, change, expected] of CHANGES) {
  test(`finds a change to the signed tree: ${name}`, async () => {
    const { id } = await createSigned(600)
    await change(id)
    assert.match((await problemOf(id)).problem ?? 'none', expected)
  })
}

test('finds a rewritten history, with or without the archive', async () => {
  const { id, key } = await createSigned(600)
  await cutChainOf(annals, id, 580)
  await sendEvents(annals, key, 40)
  const { problem } = await problemOf(id)
  assert.match(problem ?? '', /^tile 2 of level 0 differs from the events$/)
  await run(`update checkpoint set tree_size = 0 where workspace_id = '${id}'`)
  const other = /^the checkpoint in the archive doesn't match the first 600 events$/
  assert.match((await problemOf(id)).problem ?? '', other)
  const published = /^the published checkpoint doesn't match the first 600 events$/
  assert.match((await problemOf(id, null)).problem ?? '', published)
})

test('annals verify exits with 1 and names the workspace whose tree differs', async () => {
  await using own = await startTestApp({ role: 'api' })
  const { workspace, workspaceKey } = await own.createCompany()
  await sendEvents(own, workspaceKey, 12)
  await signWhole(createSigner(own), workspace.id)
  const env = {
    ANNALS_DATABASE_URL: own.database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_ARCHIVE_URL: own.archiveUrl,
  }
  const good = await runCommandInHost(['verify'], env)
  assert.equal(good.code, 0, good.stdout)
  assert.match(good.stdout, /every chain is intact\nok: the tiles and checkpoints of 1 signed/)
  await query(own.database.connection, `update tree_tile set hashes = sha256('x')`)
  const bad = await runCommandInHost(['verify'], env)
  assert.equal(bad.code, 1)
  assert.match(
    bad.stdout,
    new RegExp(`^BROKEN workspace ${workspace.id}, its signed tree: tile 0 of level 0`),
  )
  assert.match(bad.stdout, /FAILED: 1 of 2 signed trees differ from their chains\n$/)
})

test('annals verify names a workspace with values that can’t be read, and still checks the others', async () => {
  await using own = await startTestApp({ role: 'api' })
  const { workspaces } = await own.createCompany({ workspaces: ['A', 'B', 'C'] })
  for (const { id, workspaceKey } of workspaces) {
    await sendEvents(own, workspaceKey, 3)
    await signWhole(createSigner(own), id)
  }
  const [unreadable, broken] = workspaces.map(({ id }) => id).toSorted()
  assert(unreadable && broken)
  const change = (sql: string) => query(own.database.connection, sql)
  await change(`update checkpoint set size = ${2n ** 62n} where workspace_id = '${unreadable}'`)
  await change(`update event set action = 'x' where workspace_id = '${broken}' and seq = 2`)
  const env = {
    ANNALS_DATABASE_URL: own.database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_ARCHIVE_URL: own.archiveUrl,
  }
  const { code, stdout, stderr } = await runCommandInHost(['verify'], env)
  assert.equal(code, 1, stdout + stderr)
  assert.match(
    stdout,
    new RegExp(`^UNREADABLE workspace ${unreadable}: something in its rows`, 'm'),
  )
  assert.match(stdout, new RegExp(`^BROKEN workspace ${broken} at seq 2`, 'm'))
  assert.match(stdout, /FAILED: 1 of 4 chains are broken, 1 of 4 chains could not be verified\n$/)
  assert.equal(stderr, '')
})
