import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { Secret } from '../../src/platform/secret/secret.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { commandEnv } from '../harness/app/command-env.ts'
import { query } from '../harness/database/engine.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { readAudit } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import {
  createSigner,
  openNote,
  readCheckpoint,
  sendEvents,
  signWhole,
} from '../harness/proof/proof.ts'
import { SECRET_KEY, startTestApp, type TestApp } from '../harness/app/start-app.ts'

const MINUTE_MS = 60_000
await using stack = new AsyncDisposableStack()
/** An API node doesn't sign on its own, so the tests decide who signs when. */
const annals = stack.use(await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } }))
const kept = stack.move()
after(() => kept.disposeAsync())

const rotate = (app: TestApp, env: Record<string, string> = {}) =>
  runCommandInHost(['signing-key', 'rotate'], { ...commandEnv(app), ...env })

function derivedSource() {
  const secretKey = new Secret(Buffer.from(SECRET_KEY, 'base64'))
  return { secretKey, configured: null, previous: null }
}

/** The key IDs of all signatures of the checkpoint, and the size that the first key signed. */
async function signaturesOf(app: TestApp, id: WorkspaceId) {
  const checkpoint = await readCheckpoint(app, id)
  assert(checkpoint)
  const { size } = openNote(checkpoint.note, checkpoint.vkey)
  const lines = checkpoint.note.split('\n\n')[1]?.trimEnd().split('\n') ?? []
  return { size, vkey: checkpoint.vkey, count: lines.length }
}

/** The entries about new keys in the company's audit log. */
async function changesIn(app: TestApp, company: CreatedCompany) {
  const entries = await readAudit(app, company)
  return entries.filter(({ action }) => action === 'SIGNING_KEY_CHANGED')
}

test('running nodes sign with a rotated key, even workspaces without new events', async () => {
  const { clock, advance } = manualClock()
  const env = { ANNALS_CHECKPOINT_SECONDS: '1', ANNALS_RATE_LIMITS: 'off' }
  await using first = await startTestApp({ clock, env })
  const shared = { ...env, ANNALS_ARCHIVE_URL: first.archiveUrl }
  const databaseUrl = first.database.url
  await using second = await startTestApp({ clock, databaseUrl, env: shared })
  const idle = await first.createCompany()
  await sendEvents(first, idle.workspaceKey, 3)
  const signed = await eventually(() => signaturesOf(first, idle.workspace.id))
  assert.deepEqual([signed.size, signed.count], [3, 1])

  const { code, stdout, stderr } = await rotate(first)
  assert.equal(code, 0, stderr)
  const [, current, previous] =
    /now signed with the key (\S+)\.\nThe key (\S+) also signs until 20/.exec(stdout) ?? []
  assert(current !== undefined && previous !== undefined, stdout)
  advance(2 * MINUTE_MS)
  await eventually(async () => {
    const { size, vkey, count } = await signaturesOf(first, idle.workspace.id)
    assert.deepEqual([size, count], [3, 2])
    assert.notEqual(vkey, signed.vkey)
    assert(
      Buffer.from(vkey.split('+').slice(2).join('+'), 'base64').includes(
        Buffer.from(current, 'base64'),
      ),
    )
  })
  const checkpoint = await readCheckpoint(first, idle.workspace.id)
  assert(checkpoint)
  assert.equal(openNote(checkpoint.note, signed.vkey).size, 3, 'the replaced key signs too')
  for (const node of [first, second]) {
    const { json } = await node.call('GET', '/.well-known/annals.json')
    const listed = json.publicKeys.map((key: { publicKey: string }) => key.publicKey)
    assert.deepEqual(listed, [previous, current])
  }
  const entries = await changesIn(first, idle)
  assert.equal(entries.length, 1, 'one entry, from the command or from the signer')
  const { metadata } = entries[0] ?? assert.fail()
  assert.deepEqual([metadata.publicKey, metadata.previousPublicKey], [current, previous])
})

test('a workspace without events is signed again too, but only once', async () => {
  const { workspace } = await annals.createCompany()
  await createSigner(annals).sign(workspace.id)
  const before = await signaturesOf(annals, workspace.id)
  const { code } = await rotate(annals)
  assert.equal(code, 0)
  const signer = createSigner(annals)
  assert.equal(await signWhole(signer, workspace.id), 'done')
  const after = await signaturesOf(annals, workspace.id)
  assert.notEqual(after.vkey, before.vkey)
  assert.deepEqual([after.size, after.count], [0, 2])
  const note = (await readCheckpoint(annals, workspace.id))?.note
  assert.equal(await signWhole(createSigner(annals), workspace.id), 'done')
  assert.equal((await readCheckpoint(annals, workspace.id))?.note, note)
})

test('a signer that remembers the old note does not publish it again', async () => {
  const { workspace, workspaceKey } = await annals.createCompany()
  await sendEvents(annals, workspaceKey, 2)
  const stale = createSigner(annals)
  await signWhole(stale, workspace.id)
  assert.equal((await rotate(annals)).code, 0)
  await signWhole(createSigner(annals), workspace.id)
  const replaced = (await readCheckpoint(annals, workspace.id))?.note
  assert.equal(await signWhole(stale, workspace.id), 'done')
  assert.equal((await readCheckpoint(annals, workspace.id))?.note, replaced)
})

test('a key that the operator configured can only be replaced in the configuration', async () => {
  const key = randomBytes(32).toString('base64')
  const { code, stdout, stderr } = await rotate(annals, { ANNALS_SIGNING_KEY: key })
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /set ANNALS_SIGNING_KEY_PREVIOUS to the old one, and restart all nodes\.\n$/)
})

test('another secret key or a missing archive changes nothing', async () => {
  const keys = await createSigner(annals).listKeys()
  const wrong = await rotate(annals, { ANNALS_SECRET_KEY: randomBytes(32).toString('base64') })
  assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
  assert.match(wrong.stderr, /different secret key/)
  const { ANNALS_ARCHIVE_URL: _, ...bare } = commandEnv(annals)
  const none = await runCommandInHost(['signing-key', 'rotate'], bare)
  assert.equal(none.code, 1)
  assert.match(none.stderr, /without an archive, nothing is signed/)
  assert.deepEqual(await createSigner(annals).listKeys(), keys)
})

test('a change in the configuration is in the audit log of every company, once', async () => {
  await using owner = await startTestApp({ role: 'api' })
  const companies = [await owner.createCompany(), await owner.createCompany()] as const
  const start = (env: Record<string, string>) => {
    const own = { ANNALS_ARCHIVE_URL: owner.archiveUrl, ANNALS_CHECKPOINT_SECONDS: '1' }
    const databaseUrl = owner.database.url
    return startTestApp({ role: 'worker', databaseUrl, env: { ...own, ...env } })
  }
  const listed = async () => (await owner.call('GET', '/.well-known/annals.json')).json.publicKeys
  assert.equal((await listed()).length, 1)
  const changed = { ANNALS_SIGNING_KEY: randomBytes(32).toString('base64') }
  for (const env of [changed, changed]) {
    await using _node = await start(env)
    const { workspace, workspaceKey } = companies[0]
    // The node compares its key at the end of a pass, so after the second one it has.
    for (let pass = 0; pass < 2; pass += 1) {
      const size = (await readCheckpoint(owner, workspace.id))?.size ?? 0
      await sendEvents(owner, workspaceKey, 1)
      await eventually(async () => assert((await signaturesOf(owner, workspace.id)).size > size))
    }
  }
  for (const company of companies) {
    const entries = await changesIn(owner, company)
    assert.deepEqual(
      entries.map(({ actor }) => actor.id),
      ['annals'],
    )
  }
})

test('annals verify reports a deleted list of keys, and a node restores and publishes it', async () => {
  await using own = await startTestApp({ role: 'api' })
  const { workspace } = await own.createCompany()
  await createSigner(own).sign(workspace.id)
  assert.equal((await rotate(own)).code, 0)
  await createSigner(own).sign(workspace.id)
  const { archive } = own.app
  const list = await archive.readTagged('signer/keys')
  await archive.delete('signer/keys')

  const broken = await runCommandInHost(['verify'], commandEnv(own))
  assert.equal(broken.code, 1)
  assert.equal(
    broken.stdout,
    'BROKEN list of signing keys: the object signer/keys in the archive is missing\n' +
      'FAILED: the list of signing keys was changed\n',
  )
  assert.equal(await archive.readTagged('signer/keys'), null)

  const { json } = await own.call('GET', '/.well-known/annals.json')
  assert.equal(json.publicKeys.length, 2)
  assert.deepEqual(await archive.readTagged('signer/keys'), list)
  const intact = await runCommandInHost(['verify'], commandEnv(own))
  assert.equal(intact.code, 0, intact.stdout)
})

test('a list that starts over after something was signed gets an audit entry, even if its key has one', async () => {
  await using own = await startTestApp({ role: 'api' })
  const company = await own.createCompany()
  const audit = createServiceAudit(Date.now)
  await createSigner(own).sign(company.workspace.id)
  const keySource = { ...derivedSource(), configured: new Secret(randomBytes(32)) }
  const changed = createSigner(own, { keySource })
  await changed.sign(company.workspace.id)
  await changed.announceKeys(audit)
  assert.equal((await changesIn(own, company)).length, 1)

  await own.app.archive.delete('signer/keys')
  await query(own.database.connection, 'delete from signing_key_list')
  const later = createSigner(own, { keySource, clock: () => Date.now() + 10 * MINUTE_MS })
  const current = await later.currentKey()
  await later.announceKeys(audit)
  await later.announceKeys(audit)
  const entries = await changesIn(own, company)
  assert.equal(entries.length, 2)
  const again = entries.find(({ metadata }) => metadata.previousPublicKey === null)
  assert.equal(again?.metadata.publicKey, current)
})

test('after the secret key is changed, the list of keys is accepted with the new one', async () => {
  await using own = await startTestApp({ role: 'api' })
  const { workspace } = await own.createCompany()
  const signer = createSigner(own)
  await signer.sign(workspace.id)
  const [listed] = await signer.listKeys()
  assert(listed)
  const env = { ...commandEnv(own), ANNALS_SECRET_KEY: randomBytes(32).toString('base64') }
  const accepted = await runCommandInHost(['secret-key', 'accept'], env)
  assert.equal(accepted.code, 0, accepted.stderr)
  assert.match(accepted.stdout, /The list of signing keys was accepted with these keys\./)
  assert(accepted.stdout.endsWith(`  ${listed.publicKey} (from ${listed.from})\n`))
  const verified = await runCommandInHost(['verify'], env)
  assert.equal(verified.code, 0, verified.stdout)
  const repeated = await runCommandInHost(['secret-key', 'accept'], env)
  assert.equal(repeated.stdout, 'The database now requires this secret key.\n')
})
