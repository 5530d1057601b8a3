import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { readState, stateKeyOf, writeState } from '../../src/outlet/proof/signer-state.ts'
import { REPLACED_BYTES_MAX } from '../../src/platform/object-store/object-store.ts'
import { parseCheckpoint } from '../../src/platform/tlog/signed-note.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { noticesOf } from '../harness/dashboard/notices.ts'
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
import { runVerifier, temporaryFiles } from '../harness/proof/verifier.ts'

// An API node doesn't sign on its own, so the tests decide who signs when.
const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { archive } = annals.app
const run = (sql: string) => query(annals.database.connection, sql)
const writeTemporary = temporaryFiles()

const fork = (workspaceId: string, ...args: string[]) =>
  runCommandInHost(['ledger-fork', '--workspace', workspaceId, ...args], {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_ARCHIVE_URL: annals.archiveUrl,
  })

/** A company whose chain was signed, and then restored from an older backup. */
async function createRestored(signed: number, restored: number): Promise<CreatedCompany> {
  const company = await annals.createCompany()
  const { workspace, workspaceKey } = company
  await sendEvents(annals, workspaceKey, signed)
  await signWhole(createSigner(annals), workspace.id)
  await cutChainOf(annals, workspace.id, restored)
  return company
}

const forksIn = async (company: CreatedCompany) =>
  (await readAudit(annals, company)).filter(({ action }) => action === 'LEDGER_FORK_ACCEPTED')

test('members get one notice about a chain that the signer refuses', async () => {
  const company = await createRestored(9, 6)
  const { workspace, workspaceKey } = company
  const owner = await signInAs(annals, company, 'OWNER')
  const signer = createSigner(annals)
  for (let again = 0; again < 2; again += 1) {
    assert.equal(await signer.sign(workspace.id), 'refused')
    await sendEvents(annals, workspaceKey, 1)
  }
  const notices = async () =>
    (await noticesOf(owner)).map(({ kind, workspaceId }) => [kind, workspaceId])
  assert.deepEqual(await notices(), [['CHAIN_BROKEN', workspace.id]])
  const [notice] = await noticesOf(owner)
  assert.match(
    notice?.message ?? '',
    /the chain has 6 events, but a checkpoint of 9 events was signed/,
  )
  // After the operator has accepted that, another loss is another cause.
  assert.equal((await fork(workspace.id, '--accept-size', '8')).code, 0)
  await cutChainOf(annals, workspace.id, 5)
  assert.equal(await createSigner(annals).sign(workspace.id), 'refused')
  assert.equal((await notices()).length, 2)
})

test('says what is lost, and changes nothing without the size to accept', async () => {
  const company = await createRestored(300, 270)
  const { id } = company.workspace
  const before = await archive.readTagged(stateKeyOf(id))
  const { code, stdout } = await fork(id)
  assert.equal(code, 1)
  assert.match(stdout, /: the chain is shorter than what was signed\.\nSigned: 300 events at 20/)
  assert.match(stdout, /Certainly unchanged: the first 256 events\./)
  assert.match(stdout, /up to 44 events, from 257 to 300\./)
  assert.match(
    stdout,
    new RegExp(`run: annals ledger-fork --workspace ${id} --accept-size 270\\n$`),
  )
  assert.deepEqual(await archive.readTagged(stateKeyOf(id)), before)
  assert.deepEqual(await forksIn(company), [])
  assert.equal(await createSigner(annals).sign(id), 'refused')
})

test('accepts a restored backup, keeps what was signed, and records who did it', async () => {
  const company = await createRestored(300, 270)
  const { workspace, workspaceKey } = company
  const { id } = workspace
  const running = createSigner(annals)
  assert.equal(await running.sign(id), 'refused')
  const old = await archive.readTagged(stateKeyOf(id))
  const oldNote = (await readCheckpoint(annals, id))?.note ?? ''
  // Events that arrive before the operator decides are signed too.
  await sendEvents(annals, workspaceKey, 2)
  const { code, stdout, stderr } = await fork(id, '--accept-size', '270')
  assert.equal(code, 0, stderr)
  const [, keptObject = ''] = /is in the archive, in (\S+)\.\n/.exec(stdout) ?? []
  assert.deepEqual((await archive.readTagged(keptObject))?.bytes, old?.bytes)
  const checkpoint = await readCheckpoint(annals, id)
  assert(checkpoint)
  assert.deepEqual(openNote(checkpoint.note, checkpoint.vkey), {
    origin: `annals.local/${id}`,
    size: 272,
    root: treeRoot(await readHashes(annals, id)),
  })
  assert.equal(await readRefusal(annals, id), '')
  const [entry, ...others] = await forksIn(company)
  assert.deepEqual(others, [])
  assert.deepEqual([entry?.actor.id, entry?.metadata.address], ['operator', 'command line'])
  const { reason, signedSize, acceptedSize, unchangedSize } = entry?.metadata ?? {}
  assert.equal(reason, 'the chain is shorter than what was signed')
  assert.deepEqual([signedSize, acceptedSize, unchangedSize], [300, 270, 256])
  assert.equal(entry?.metadata.keptObject, keptObject)

  // A signer that runs continues, and the API proves events again.
  await sendEvents(annals, workspaceKey, 40)
  assert.equal(await signWhole(running, id), 'done')
  const path = `/v1/workspaces/${id}/consistency?from=300`
  const { json } = await annals.call('GET', path, { key: workspaceKey })
  const newer = await readCheckpoint(annals, id)
  assert(newer)
  assert.equal(parseCheckpoint(newer.note)?.size, 312)
  // What an auditor who kept the old checkpoint sees.
  const verdict = runVerifier([
    'consistency',
    writeTemporary('old.txt', oldNote),
    writeTemporary('new.txt', newer.note),
    '--proof',
    writeTemporary('proof.json', json),
    '--vkey',
    newer.vkey,
  ])
  assert.deepEqual([verdict.code, verdict.out.slice(0, 9)], [1, 'TAMPERED:'])
})

test('a repeated command after a crash replaces the state and adds no second entry', async () => {
  const company = await createRestored(300, 270)
  const { id } = company.workspace
  const old = (await archive.readTagged(stateKeyOf(id))) ?? assert.fail()
  const dayOf = (day: string, size: number) =>
    run(`insert into checkpoint_day (workspace_id, day, size, root, note, vkey, signed_at)
         select workspace_id, '${day}', ${size}, root, note, vkey, signed_at
           from checkpoint where workspace_id = '${id}'`)
  await dayOf('2026-01-01', 200)
  await dayOf('2026-01-02', 299)
  assert.equal((await fork(id, '--accept-size', '270')).code, 0)
  // What a crash after the audit entry leaves behind: the old object, and no published checkpoint.
  await archive.put(stateKeyOf(id), old.bytes)
  await run(`update checkpoint set tree_size = 0, size = null, origin = null, root = null, note = null,
                    vkey = null, signed_at = null
              where workspace_id = '${id}'`)
  assert.equal(await createSigner(annals).sign(id), 'refused')
  const { code, stdout, stderr } = await fork(id, '--accept-size', '270')
  assert.equal(code, 0, stderr)
  assert.match(stdout, /Accepted 270 events\./)
  assert.equal((await readCheckpoint(annals, id))?.size, 270)
  assert.equal((await forksIn(company)).length, 1)
  // The checkpoint of a day whose events are not certainly unchanged is no longer shown.
  const days = await run(`select size::int from checkpoint_day where workspace_id = '${id}'`)
  assert.deepEqual(days, [{ size: 200 }])
})

test('accepts a history with other events, but only once and only a size that exists', async () => {
  const company = await createRestored(20, 17)
  const { workspace, workspaceKey } = company
  const { id } = workspace
  await sendEvents(annals, workspaceKey, 8)
  const report = await fork(id)
  assert.match(report.stdout, /the events are not those that were signed/)
  assert.match(report.stdout, /Certainly unchanged: the first 16 events\./)
  for (const size of ['26', '0', '-1', 'all']) {
    const { code, stderr } = await fork(id, `--accept-size=${size}`)
    assert.equal(code, 1)
    assert.match(stderr, /--accept-size must be/)
  }
  assert.deepEqual(await forksIn(company), [])
  assert.equal((await fork(id, '--accept-size', '25')).code, 0)
  const again = await fork(id, '--accept-size', '25')
  assert.equal(again.code, 1)
  assert.match(again.stderr, /contains everything that was signed/)
  assert.equal((await forksIn(company)).length, 1)
})

test('accepts a chain when the signed state is lost or damaged', async () => {
  for (const damage of ['delete', 'replace'] as const) {
    const company = await annals.createCompany()
    const { id } = company.workspace
    await sendEvents(annals, company.workspaceKey, 9)
    await signWhole(createSigner(annals), id)
    if (damage === 'delete') await archive.delete(stateKeyOf(id))
    else await archive.put(stateKeyOf(id), Buffer.from('{}'))
    assert.equal(await createSigner(annals).sign(id), 'refused')
    const { code, stdout, stderr } = await fork(id, '--accept-size', '9')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /says that 9 events were signed\. This can't be checked/)
    assert.equal((await readState(archive, id)).tree?.size, 9)
    assert.equal((await forksIn(company)).length, 1)
  }
})

test('ledger-fork trusts nothing in a state that the service has not signed', async () => {
  const company = await annals.createCompany()
  const { id } = company.workspace
  await sendEvents(annals, company.workspaceKey, 9)
  await signWhole(createSigner(annals), id)
  const { tree } = await readState(archive, id)
  assert(tree)
  await archive.put(stateKeyOf(id), writeState({ ...tree, origin: `bank.example/${id}` }))
  assert.equal(await createSigner(annals).sign(id), 'refused')
  const { code, stdout, stderr } = await fork(id, '--accept-size', '9')
  assert.equal(code, 0, stderr)
  assert.match(stdout, /is not signed with a key of this service/)
  assert.equal((await readState(archive, id)).tree?.origin, tree.origin)
})

test('asks the operator to move a signed state that is too large', async () => {
  const company = await annals.createCompany()
  const { id } = company.workspace
  await sendEvents(annals, company.workspaceKey, 3)
  await signWhole(createSigner(annals), id)
  const state = await archive.readTagged(stateKeyOf(id))
  assert(state)
  const padding = Buffer.alloc(REPLACED_BYTES_MAX, ' ')
  await archive.put(stateKeyOf(id), Buffer.concat([state.bytes, padding]))
  const refused = await fork(id, '--accept-size', '3')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /is larger than any that the signer writes\. Move it out/)
  assert.deepEqual(await forksIn(company), [])
  await archive.delete(stateKeyOf(id))
  const accepted = await fork(id, '--accept-size', '3')
  assert.equal(accepted.code, 0, accepted.stderr)
})

test('never accepts a broken chain or an unknown workspace', async () => {
  const company = await createRestored(12, 10)
  const { id } = company.workspace
  await run(`update event set category = 'x' where workspace_id = '${id}' and seq = 4`)
  const { code, stderr } = await fork(id, '--accept-size', '10')
  assert.equal(code, 1)
  assert.match(stderr, /don't form an intact chain \(event 4: its fields do not match its hash\)/)
  assert.deepEqual(await forksIn(company), [])
  const unknown = await fork('018f0000-0000-7000-8000-000000000000', '--accept-size', '1')
  assert.match(unknown.stderr, /There is no workspace with the id/)
  const intact = await annals.createCompany()
  const fresh = await fork(intact.workspace.id, '--accept-size', '1')
  assert.deepEqual([fresh.code, fresh.stdout], [1, ''])
})
