import assert from 'node:assert/strict'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { verifyAll } from '../../src/command/verify/verify-all.ts'
import { confirmChain } from '../../src/outlet/verify/confirm-chain.ts'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { verifyRange } from '../../src/outlet/verify/verify-range.ts'
import { type KeptCheckpoint, TreeCheck } from '../../src/outlet/proof/check-tree.ts'
import { stateKeyOf } from '../../src/outlet/proof/signer-state.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { parseJson } from '../../src/platform/json/parse-json.ts'
import {
  type ObjectStore,
  REPLACED_BYTES_MAX,
} from '../../src/platform/object-store/object-store.ts'
import type { Server } from '../../src/platform/pg/server-address.ts'
import { serverListOf } from '../../src/platform/pg/servers.ts'
import { parseSecretKey } from '../../src/platform/secret/secret-key.ts'
import { listAllWorkspaces } from '../../src/tenancy/workspace/workspace-store.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
import { createSigner, cutChainOf, sendEvents, signWhole } from '../harness/proof/proof.ts'
import { SECRET_KEY, startTestApp, type TestApp } from '../harness/app/start-app.ts'

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
  const problem = await tree.finish()
  // The tree that is made of ranges comes to the same result.
  assert.equal((await confirm(workspaceId, store)).isIntact, problem === null)
  return { problem, isSigned: tree.isSigned }
}

/** Verifies a chain and its tree in ranges, after the first `size` events if there is a checkpoint of them. */
async function confirm(
  workspaceId: WorkspaceId,
  store: ObjectStore | null,
  kept: KeptCheckpoint | null = null,
) {
  const listKeys = () => createSigner(annals).listKeys()
  const tree = await TreeCheck.open({ db, archive: store, workspaceId, listKeys, kept })
  const hash = kept && (await tree.resume())
  const start = kept && hash !== null ? { seq: kept.size, hash } : null
  let [running, runningMax] = [0, 0]
  const seq = await confirmChain(db, {
    workspaceId,
    eventsPerRange: 256,
    rangesAheadMax: 2,
    open: async () => ({ start, tree }),
    runRange: async (range) => {
      runningMax = Math.max(runningMax, (running += 1))
      const confirmed = await verifyRange(database, archive, range, { eventsPerRead: 100 })
      running -= 1
      return confirmed
    },
  })
  assert(runningMax <= 2, 'ranges wait until an earlier one was joined')
  const isIntact = seq !== null && (await tree.finish()) === null
  return { seq, isIntact, isResumed: start !== null, checkpoint: tree.verified }
}

const FINE = { problem: null, isSigned: true }

test('trees of all sizes match their chains, while new events wait for the signer', async () => {
  for (const size of [0, 1, 255, 256, 257, 700]) {
    const { id, key } = await createSigned(size)
    assert.deepEqual(await problemOf(id), FINE, `${size} events`)
    const { checkpoint } = await confirm(id, archive)
    await sendEvents(annals, key, 3)
    assert.deepEqual(await problemOf(id), FINE, `${size} events and more`)
    const after = { seq: size + 3, isIntact: true, isResumed: size > 0, checkpoint }
    assert.deepEqual(await confirm(id, archive, checkpoint), after)
  }
})

test('the tree of an archived chain matches it', async () => {
  const { id, key } = await createSigned(300)
  const { checkpoint } = await confirm(id, archive)
  await sendEvents(annals, key, 10)
  // The checkpoint ends within a file, then with one.
  await archiveAll(annals)
  const within = await confirm(id, archive, checkpoint)
  assert.deepEqual(within, { seq: 310, isIntact: true, isResumed: true, checkpoint })
  await signWhole(createSigner(annals), id)
  const { checkpoint: last } = await confirm(id, archive)
  assert.equal(last?.size, 310)
  await sendEvents(annals, key, 10)
  await signWhole(createSigner(annals), id)
  assert.deepEqual(await problemOf(id), FINE)
  const { seq, isIntact, isResumed } = await confirm(id, archive, last)
  assert.deepEqual([seq, isIntact, isResumed], [320, true, true])
  // A note that no key of this service signed says nothing about the chain.
  const forged = { ...last, note: last.note.replace('\n320\n', '\n319\n'), size: 309 }
  assert.equal((await confirm(id, archive, forged)).isResumed, false)
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

test('annals verify --since verifies what is new, and says what it did not verify', async () => {
  await using own = await startTestApp({ role: 'api' })
  const { workspace, workspaceKey: key } = await own.createCompany()
  const { id } = workspace
  using folder = mkdtempDisposableSync(join(tmpdir(), 'annals-since-'))
  const file = join(folder.path, 'verified.json')
  const env = {
    ANNALS_DATABASE_URL: own.database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_ARCHIVE_URL: own.archiveUrl,
  }
  const verify = async (...args: string[]) => {
    const outcome = await runCommandInHost(['verify', ...args], env)
    return { ...outcome, text: outcome.stdout + outcome.stderr }
  }
  const since = (...args: string[]) => verify('--since', file, ...args)
  const change = (sql: string) => query(own.database.connection, sql)
  const edit = (seq: number, action: string) =>
    change(`update event set action = '${action}' where workspace_id = '${id}' and seq = ${seq}`)

  await sendEvents(own, key, 12)
  await signWhole(createSigner(own), id)
  const first = await since()
  assert.equal(first.code, 0, first.text)
  assert.match(first.text, new RegExp(`^since: workspace ${id} from seq 1: no checkpoint`, 'm'))
  assert.match(first.text, /^ok: \d+ events in 2 workspaces, every chain is intact$/m)

  await sendEvents(own, key, 5)
  await edit(3, 'changed')
  const second = await since('--json')
  assert.equal(second.code, 0, second.text)
  const { ok, events, skipped, since: starts } = parseJson(second.stdout)
  assert.deepEqual([ok, skipped, events > 5], [true, 12, true])
  const start = starts.find(({ workspaceId }: { workspaceId: string }) => workspaceId === id)
  assert.equal(start.fromSeq, 13)
  const whole = await verify()
  assert.match(whole.text, new RegExp(`^BROKEN workspace ${id} at seq 3 `, 'm'))

  await edit(3, 'event 2')
  await edit(14, 'changed')
  const kept = readFileSync(file, 'utf8')
  const third = await since()
  assert.equal(third.code, 1)
  assert.match(third.text, new RegExp(`^BROKEN workspace ${id} at seq 14 `, 'm'))
  assert.equal(readFileSync(file, 'utf8'), kept)

  // Someone who can change the database and the archive cuts the chain and has what is left signed.
  await edit(14, 'event 1')
  await cutChainOf(own, id, 8)
  await change(`delete from checkpoint; delete from tree_tile`)
  await own.app.archive.delete(stateKeyOf(id))
  await sendEvents(own, key, 6)
  await signWhole(createSigner(own), id)
  assert.equal((await verify()).code, 0)
  const cut = await since()
  assert.equal(cut.code, 1, cut.text)
  assert.match(cut.text, /the checkpoint that was kept doesn't match the first 12 events/)
  await change(`set session_replication_role = replica; delete from workspace where id = '${id}'`)
  await own.app.archive.delete(stateKeyOf(id))
  assert.match(
    (await since()).text,
    new RegExp(`^LOST workspace ${id}: .*verified.json has its`, 'm'),
  )

  writeFileSync(file, '{}')
  assert.match((await since()).text, /is not a file that annals verify --since has written/)
})

test('annals verify names a workspace with values that can’t be read, and still checks the others, with threads or without', async () => {
  await using own = await startTestApp({ role: 'api' })
  const { workspaces } = await own.createCompany({ workspaces: ['A', 'B', 'C'] })
  for (const { id, workspaceKey } of workspaces) {
    await sendEvents(own, workspaceKey, 3)
    await signWhole(createSigner(own), id)
  }
  const [unreadable, broken, large] = workspaces.map(({ id }) => id).toSorted()
  assert(unreadable && broken && large)
  const { workspaceKey = '' } = workspaces.find(({ id }) => id === large) ?? {}
  await sendEvents(own, workspaceKey, 1_000)
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
  const ids = workspaces.map(({ id }) => id).toSorted()
  await compareThreads(own, ids)
})

/** Threads must come to the same results in the same order as one, with one connection each. */
async function compareThreads(own: TestApp, ids: readonly WorkspaceId[]): Promise<void> {
  const secretKey = parseSecretKey(SECRET_KEY)
  assert(secretKey)
  const keySource = { secretKey, configured: null, previous: null }
  const { pool, db: ownDb } = own.app.database
  const deps = { pool, db: ownDb, archive: own.app.archive, hasArchive: true, keySource }
  const all = await listAllWorkspaces(ownDb)
  const workspaces = all.filter(({ id }) => ids.includes(id))
  const place = { url: own.archiveUrl, s3Endpoint: null, s3Region: null }
  const counts: Promise<number>[] = []
  const countConnections = async (): Promise<number> => {
    const sql = `select pid from pg_stat_activity
                  where datname = current_database() and application_name = 'annals verify'`
    return (await query(own.database.connection, sql)).length
  }
  const verifyWith = (threadsMax: number, servers: readonly Server[]) =>
    verifyAll(deps, {
      workspaces,
      kept: null,
      threadsMax,
      threadData: { address: { servers, needsPrimary: false }, archive: place },
      eventsPerRange: 256,
      eventsPerThreadMin: 100,
      onResult: () => {},
      onProgress: () => void counts.push(countConnections()),
    })
  const { servers } = serverListOf(own.database.connection)
  const expected = await verifyWith(1, servers)
  assert.equal(Math.max(...(await Promise.all(counts.splice(0)))), 0)
  assert.deepEqual(
    expected.map(({ workspaceId }) => workspaceId),
    workspaces.map(({ id }) => id),
  )
  assert.deepEqual(await verifyWith(2, servers), expected)
  const connectionsMax = Math.max(...(await Promise.all(counts)))
  assert(connectionsMax === 1 || connectionsMax === 2, `${connectionsMax} connections`)
  // If the threads can't do anything, the chains are verified without them.
  const nowhere = { host: '/nowhere', port: 1, user: '', password: '', database: '' }
  assert.deepEqual(await verifyWith(2, [nowhere]), expected)
}
