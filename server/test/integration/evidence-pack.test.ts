import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { after, test } from 'node:test'
import { enroll, openEvidencePack } from '../harness/dashboard/console.ts'
import { type Member, readAudit } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { eventually, eventuallyWithin } from '../harness/timing/eventually.ts'
import { download, makeExport, readJob, storeEvents } from '../harness/export/exports.ts'
import { createSigner, readCheckpoint, signWhole } from '../harness/proof/proof.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { readZip } from '../harness/export/zip-reader.ts'

// An API node doesn't sign on its own, so the tests decide what is signed.
const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const signer = createSigner(annals)
const run = (sql: string) => query(annals.database.connection, sql)

const EXPORTS = '/dashboard/exports'
/** The maximum time from the revocation to the end of the stream. */
const CUT_MS_MAX = 2_000
/** How long a pack waits for the signer, at least. */
const UNSIGNED_MS_MIN = 14_000

async function make(member: Member, options: object = {}): Promise<string> {
  const body = { source: 'HOT', format: 'JSONL', ...options }
  const { status, json, text } = await member.call('POST', EXPORTS, { body })
  assert.equal(status, 201, text)
  return json.id
}

async function downloadPack(member: Member, jobId: string) {
  const { response, rest } = await openEvidencePack(annals, member, jobId)
  const { body, headers, trailers, text } = await rest()
  assert.equal(response.statusCode, 200, text)
  const files = new Map(readZip(body).map(({ name, bytes }) => [name, bytes]))
  const read = (name: string) => files.get(name)?.toString() ?? assert.fail(name)
  return { files, read, headers, trailers, manifest: JSON.parse(read('manifest.json')) }
}

/** Runs the verifier of the pack in a folder with its files, as an auditor would. */
function verifyPack(files: ReadonlyMap<string, Buffer>, vkeys: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'annals-pack-'))
  try {
    for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes)
    const [file = ''] = files.keys()
    const args = ['annals-verify.mjs', 'export', file, '--manifest', 'manifest.json']
    const keys = vkeys.flatMap((vkey) => ['--vkey', vkey])
    return spawnSync(process.execPath, [...args, ...keys], { cwd: folder, encoding: 'utf8' })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const EVENTS = Array.from({ length: 9 }, (_, nth) => ({
  category: nth % 3 === 0 ? 'billing' : 'auth',
  action: `action ${nth}`,
  actor: { id: 'ana' },
}))

async function createSigned() {
  const company = await annals.createCompany()
  await storeEvents(annals, company.workspaceKey, EVENTS)
  await signWhole(signer, company.workspace.id)
  const checkpoint = await readCheckpoint(annals, company.workspace.id)
  assert(checkpoint)
  const admin = await enroll(annals, company, 'ADMIN')
  return { company, admin, vkeys: [checkpoint.vkey], origin: checkpoint.origin }
}

test('a pack has the rows, their manifest, the verifier and a README, and verifies', async () => {
  const { company, admin, vkeys, origin } = await createSigned()
  for (const [options, evidence, file, pattern] of [
    [
      { filters: { category: 'billing' }, evidence: 'COMPLETE' },
      'COMPLETE',
      'events.jsonl',
      /no event from seq 1 to 9 that matches the filters is missing/,
    ],
    [
      { filters: { actorId: 'ana' }, evidence: 'COMPLETE' },
      'MEMBERSHIP',
      'events.jsonl',
      /The last 9 rows|Seq 1 to 9 are in the signed ledger/,
    ],
    [{}, 'NONE', 'events.jsonl', /Seq 1 to 9 are in the signed ledger/],
    [{ format: 'CSV' }, 'NONE', 'events.csv', /a CSV file has no salts/],
  ] as const) {
    const jobId = await make(admin, options)
    const pack = await downloadPack(admin, jobId)
    assert.deepEqual(
      [...pack.files.keys()],
      [file, 'manifest.json', 'annals-verify.mjs', 'README.txt'],
    )
    const { status, stdout, stderr } = verifyPack(pack.files, vkeys)
    assert.equal(status, file === 'events.csv' ? 2 : 0, stdout + stderr)
    assert.match(stdout + stderr, pattern)
    const job = await readJob(annals, company.companyKey, jobId)
    assert.deepEqual(
      [job.status, job.sha256, job.evidence],
      ['SUCCEEDED', hash('sha256', pack.files.get(file) ?? ''), evidence],
    )
    const byKey = await annals.call('GET', `/v1/exports/${jobId}/manifest`, {
      key: company.companyKey,
    })
    assert.deepEqual(byKey.json, pack.manifest)
    for (const text of [origin, jobId, job.sha256, `export ${file} --manifest`]) {
      assert(pack.read('README.txt').includes(text), text)
    }
    assert.deepEqual(pack.trailers, {})
    assert.equal(pack.headers['content-type'], 'application/zip')
    assert.match(
      pack.headers['content-disposition'] ?? '',
      /^attachment; filename="acme-[^"]+\.zip"/,
    )
  }
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert.deepEqual(actions.slice(0, 3), [
    'EXPORT_REQUESTED',
    'EXPORT_DOWNLOAD_STARTED',
    'EXPORT_DOWNLOADED',
  ])
})

test('the pack of a stored file can be downloaded as often as needed', async () => {
  const { company, admin, vkeys } = await createSigned()
  const jobId = await makeExport(annals, company.companyKey, { filters: { category: 'auth' } })
  const { text } = await download(annals, company.companyKey, jobId)
  await annals.app.archive.put(`exports/${company.company.id}/${jobId}/000001`, Buffer.from(text))
  await run(`update export_job set stored_at = now(), parts_max = 1, cadence = 'DAILY',
                    template_id = gen_random_uuid(), period_end = now()
              where id = '${jobId}'`)
  for (const _again of [1, 2]) {
    const pack = await downloadPack(admin, jobId)
    assert.equal(pack.read('events.jsonl'), text)
    assert.equal(verifyPack(pack.files, vkeys).status, 0)
  }
  await run(`update export_job set ranges = (select jsonb_agg(range - 'firstSeq')
                                               from jsonb_array_elements(ranges) as range)
              where id = '${jobId}'`)
  const refused = await admin.call('GET', `${EXPORTS}/${jobId}/evidence-pack`)
  assert.deepEqual([refused.status, refused.json.code], [409, 'conflict'])
})

test('a pack waits until its newest events are signed', async () => {
  const { company, admin, vkeys } = await createSigned()
  await storeEvents(annals, company.workspaceKey, EVENTS)
  const jobId = await make(admin)
  const opening = downloadPack(admin, jobId)
  // It has started once it watches the member's session, but not before the events are signed.
  await eventually(async () => assert.equal(await statusOf(admin, jobId), 'PENDING'))
  await signWhole(signer, company.workspace.id)
  const pack = await opening
  assert.equal(pack.manifest.workspaces[0].lastSeq, 18)
  assert.equal(verifyPack(pack.files, vkeys).status, 0)
})

test('a pack whose events stay unsigned is refused, and the job stays open', async () => {
  const { company, admin } = await createSigned()
  await storeEvents(annals, company.workspaceKey, EVENTS)
  const jobId = await make(admin)
  const startedAtMs = performance.now()
  const { status, json, headers } = await admin.call('GET', `${EXPORTS}/${jobId}/evidence-pack`)
  assert.deepEqual([status, json.code], [409, 'conflict'])
  assert.match(json.error, /No signed checkpoint contains this yet/)
  assert(Number(headers.get('retry-after')) > 0)
  assert(performance.now() - startedAtMs >= UNSIGNED_MS_MIN)
  assert.equal(await statusOf(admin, jobId), 'PENDING')
  await signWhole(signer, company.workspace.id)
  assert.equal((await downloadPack(admin, jobId)).manifest.rows, 18)
})

async function statusOf(member: Member, jobId: string): Promise<string> {
  return (await member.call('GET', `${EXPORTS}/${jobId}`)).json.status
}

/** 20 MB that don't compress well, more than all buffers on the way. */
async function createLarge() {
  const company = await annals.createCompany()
  for (let count = 0; count < 120; count += 1) {
    const text = randomBytes(120_000).toString('base64')
    const event = { category: 'large', action: `large.${count}`, metadata: { text } }
    await storeEvents(annals, company.workspaceKey, [event])
  }
  await signWhole(signer, company.workspace.id)
  return { company, owner: await enroll(annals, company, 'OWNER') }
}
const large = await createLarge()

async function openSlow(member: Member, jobId: string) {
  const { response } = await openEvidencePack(annals, member, jobId)
  assert.equal(response.statusCode, 200)
  await once(response, 'readable')
  return response
}

test('cuts a pack within two seconds when the member is removed', async () => {
  const { company, owner } = large
  const member = await enroll(annals, company, 'ANALYST', company.workspace)
  const jobId = await make(member)
  const response = await openSlow(member, jobId)
  await owner.call('DELETE', `/dashboard/members/${member.userId}`)
  await eventuallyWithin(CUT_MS_MAX, async () => {
    const entry = (await readAudit(annals, company)).at(-1)
    assert.deepEqual(
      [entry?.action, entry?.metadata.reason],
      ['EXPORT_DOWNLOAD_CUT', 'not_signed_in'],
    )
  })
  response.resume()
  await eventually(() => assert(response.destroyed))
  assert.equal(response.complete, false)
  assert.equal(await statusOf(owner, jobId), 'RUNNING')
})

test('a pack without its manifest is cut, and the job stays open', async () => {
  const { company, owner } = large
  const jobId = await make(owner)
  const response = await openSlow(owner, jobId)
  const tile = `update tree_tile set hashes = set_byte(hashes, 2, 255 - get_byte(hashes, 2))
                 where workspace_id = '${company.workspace.id}'`
  const [before] = await run(`select encode(hashes, 'hex') as hashes from tree_tile
                               where workspace_id = '${company.workspace.id}'`)
  await run(tile)
  response.resume()
  await eventually(() => assert(response.destroyed))
  assert.equal(response.complete, false)
  assert.equal(await statusOf(owner, jobId), 'RUNNING')
  await run(`update tree_tile set hashes = '\\x${String(before?.['hashes'])}'
              where workspace_id = '${company.workspace.id}'`)
  assert.equal((await downloadPack(owner, jobId)).manifest.rows, 120)
  assert.equal(await statusOf(owner, jobId), 'SUCCEEDED')
})

test('a pack is refused like a download, and needs a signed ledger', async () => {
  const { company, admin } = await createSigned()
  const viewer = await enroll(annals, company, 'VIEWER', company.workspace)
  const jobId = await make(admin)
  const path = `${EXPORTS}/${jobId}/evidence-pack`
  const refusalOf = async (member: Member) => {
    const { status, json } = await member.call('GET', path)
    return [status, json.code]
  }
  assert.deepEqual(await refusalOf(viewer), [403, 'insufficient_role'])
  await downloadPack(admin, jobId)
  assert.deepEqual(await refusalOf(admin), [409, 'export_not_downloadable'])
  await using bare = await startTestApp({ hasArchive: false })
  const other = await bare.createCompany()
  const owner = await enroll(bare, other, 'OWNER')
  const { json: capabilities } = await owner.call('GET', `${EXPORTS}/capabilities`)
  assert.equal(capabilities.evidencePacks, false)
  const unsigned = await make(owner)
  const { status, json } = await owner.call('GET', `${EXPORTS}/${unsigned}/evidence-pack`)
  assert.deepEqual([status, json.code], [503, 'unavailable'])
  assert.equal(await statusOf(owner, unsigned), 'PENDING')
})
