import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, test } from 'node:test'
import { archiveAll, listFiles } from '../harness/archive/archive.ts'
import { listPaths, startWithBucket } from '../harness/archive/bucket.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { query } from '../harness/database/engine.ts'
import {
  download,
  type ExportRequest,
  makeExport,
  readJob,
  storeEvents,
} from '../harness/export/exports.ts'
import { createSigner, sendEvents, signWhole } from '../harness/proof/proof.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'
import { temporaryFiles, verifyExport, vkeysOf } from '../harness/proof/verifier.ts'

const DAY_MS = 86_400_000
// In the past, because archiving needs events that were received before the real time.
const { clock, advance } = manualClock(Date.now() - 30 * DAY_MS)
// An API node doesn't sign on its own, so the tests decide what is signed.
const annals = await startTestApp({ role: 'api', clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const write = temporaryFiles()
const signer = createSigner(annals)
type Company = Awaited<ReturnType<typeof annals.createCompany>>
type Json = TestResponse['json']

const timeOf = (ms: number) => new Date(ms).toISOString()

async function sign({ workspaces }: Pick<Company, 'workspaces'>): Promise<void> {
  for (const { id } of workspaces) await signWhole(signer, id)
}

const readManifest = (key: string, jobId: string) =>
  annals.call('GET', `/v1/exports/${jobId}/manifest`, { key })

type Evidence = { jobId: string; file: string; manifest: Json }

/** Creates and downloads an export, and gets its manifest. */
async function exportWithManifest(key: string, options: ExportRequest = {}): Promise<Evidence> {
  const jobId = await makeExport(annals, key, options)
  const { text: file } = await download(annals, key, jobId)
  const { status, json, text } = await readManifest(key, jobId)
  assert.equal(status, 200, text)
  return { jobId, file, manifest: json }
}

const verify = (evidence: Omit<Evidence, 'jobId'>, vkeys: readonly string[]) =>
  verifyExport(write, evidence, vkeys)

function requireProven(evidence: Evidence, vkeys: readonly string[], pattern: RegExp): void {
  const { code, out, err } = verify(evidence, vkeys)
  assert.equal(code, 0, out + err)
  assert.match(out, pattern)
}

const EVENTS = Array.from({ length: 12 }, (_, nth) => ({
  category: nth % 3 === 0 ? 'billing' : 'auth',
  action: `action ${nth}`,
  actor: { id: `u${nth % 2}` },
  metadata: { nth },
}))

test('exports of every kind verify with their manifests, hot and archived', async () => {
  const company = await annals.createCompany({ workspaces: ['One', 'Two', 'Empty'] })
  const [one, two] = company.workspaces
  assert(one && two)
  await storeEvents(annals, one.workspaceKey, EVENTS)
  await storeEvents(annals, two.workspaceKey, EVENTS.slice(1, 3))
  await sign(company)
  const vkeys = await vkeysOf(annals, company.workspaces)
  const key = company.companyKey
  const ofOne = { workspaceId: one.id }
  const times = { from: timeOf(clock() - DAY_MS), to: timeOf(clock() + DAY_MS) }
  const check = async (given: ExportRequest) => {
    const all = await exportWithManifest(key, given)
    requireProven(all, vkeys, /Seq 1 to 12 are in the signed ledger.*Seq 1 to 2 are/s)
    assert.deepEqual(
      all.manifest.workspaces.map(({ workspaceId }: Json) => workspaceId),
      [one.id, two.id].toSorted(),
    )
    const { filters } = given
    const billing = { ...filters, category: 'billing' }
    const filtered = await exportWithManifest(key, { ...given, filters: billing })
    assert.deepEqual([filtered.manifest.evidence, filtered.manifest.rows], ['NONE', 4])
    requireProven(filtered, vkeys, /the 3 rows before the last gap are in the signed ledger/)
    const empty = filtered.manifest.workspaces.find(
      ({ workspaceId }: Json) => workspaceId === two.id,
    )
    assert.deepEqual([empty.firstSeq, empty.lastSeq, empty.lastLeafProof], [null, null, null])
    const complete = { ...given, evidence: 'COMPLETE' }
    const proven = await exportWithManifest(key, { ...complete, filters: { ...billing, ...ofOne } })
    assert.deepEqual([proven.manifest.evidence, proven.manifest.rows], ['COMPLETE', 4])
    requireProven(proven, vkeys, /no event from seq 1 to 12 that matches the filters is missing/)
    const byActor = { ...complete, filters: { ...filters, actorId: 'u1' } }
    const members = await exportWithManifest(key, byActor)
    assert.equal(members.manifest.evidence, 'MEMBERSHIP')
    requireProven(members, vkeys, /Not proven:.*gaps? of seq/s)
    const csv = verify(await exportWithManifest(key, { ...given, format: 'CSV' }), vkeys)
    assert.equal(csv.code, 2)
    assert.match(csv.err, /matches the SHA-256 in the manifest, but/)
    const cut = await exportWithManifest(key, {
      ...given,
      limit: 5,
      filters: { ...filters, ...ofOne },
    })
    assert.equal(cut.manifest.workspaces[0].lastSeq, 5)
    requireProven(cut, vkeys, /the 7 events of the signed ledger after seq 5/)
  }
  await check({ filters: {} })
  assert.equal((await archiveAll(annals)).failed, 0)
  await check({ source: 'HOT_AND_ARCHIVED', filters: times })
})

test('the manifest has the documented fields, and a workspace key gets it too', async () => {
  const company = await annals.createCompany()
  const { workspaceKey: key, workspace, project } = company
  await storeEvents(annals, key, EVENTS)
  await sign(company)
  const filters = { category: 'auth', workspaceId: workspace.id }
  const { jobId, manifest } = await exportWithManifest(key, { filters })
  const job = await readJob(annals, key, jobId)
  const { workspaces, ...head } = manifest
  assert.deepEqual(head, {
    version: 1,
    jobId,
    format: 'JSONL',
    filters,
    rows: 8,
    sha256: job.sha256,
    evidence: 'NONE',
  })
  assert.deepEqual(
    workspaces.map(({ checkpoint: _note, vkey: _vkey, lastLeafProof, ...rest }: Json) => ({
      ...rest,
      index: lastLeafProof.index,
      size: lastLeafProof.size,
    })),
    [
      {
        workspaceId: workspace.id,
        origin: `annals.local/${workspace.id}`,
        firstSeq: 2,
        lastSeq: 12,
        index: 11,
        size: 12,
      },
    ],
  )
  const none = await exportWithManifest(key, { filters: { projectId: project.id } })
  assert.deepEqual([none.manifest.rows, none.file], [0, ''])
})

test('a later manifest has a newer checkpoint and proves the same file', async () => {
  const company = await annals.createCompany()
  const { workspaceKey: key } = company
  await storeEvents(annals, key, EVENTS)
  await sign(company)
  const evidence = await exportWithManifest(key)
  await sendEvents(annals, key, 300)
  await sign(company)
  const { json: manifest } = await readManifest(key, evidence.jobId)
  assert.equal(manifest.workspaces[0].lastLeafProof.size, 312)
  const vkeys = await vkeysOf(annals, company.workspaces)
  requireProven(
    { ...evidence, manifest },
    vkeys,
    /the 300 events of the signed ledger after seq 12/,
  )
})

test('returns a conflict that can be retried for an unfinished job or an unsigned event', async () => {
  const company = await annals.createCompany()
  const { workspaceKey: key } = company
  await storeEvents(annals, key, EVENTS)
  await sign(company)
  await storeEvents(annals, key, EVENTS)
  const jobId = await makeExport(annals, key)
  const requireConflict = async (pattern: RegExp, retryAfter: string | null) => {
    const { status, json, headers } = await readManifest(key, jobId)
    assert.deepEqual([status, json.code], [409, 'conflict'])
    assert.match(json.error, pattern)
    assert.equal(headers.get('retry-after'), retryAfter)
  }
  await requireConflict(/is PENDING\. It has a manifest once it is SUCCEEDED/, '5')
  await download(annals, key, jobId)
  await requireConflict(/No signed checkpoint contains this yet/, '5')
  await sign(company)
  assert.equal((await readManifest(key, jobId)).status, 200)
  await query(
    annals.database.connection,
    `update export_job set status = 'CANCELED' where id = '${jobId}'`,
  )
  await requireConflict(/is CANCELED, so it has no manifest\. Rerun it/, null)
})

test('a job finished by an earlier version has a manifest if it is COMPLETE', async () => {
  const company = await annals.createCompany()
  const { workspaceKey: key } = company
  await storeEvents(annals, key, EVENTS)
  await sign(company)
  const vkeys = await vkeysOf(annals, company.workspaces)
  const forget = async (jobId: string) => {
    await query(
      annals.database.connection,
      `update export_job
          set ranges = (select jsonb_agg(range - 'firstSeq' - 'lastSeq')
                          from jsonb_array_elements(ranges) as range)
        where id = '${jobId}'`,
    )
    return await readManifest(key, jobId)
  }
  const plain = await exportWithManifest(key)
  const { status, json, headers } = await forget(plain.jobId)
  assert.deepEqual([status, json.code], [409, 'conflict'])
  assert.match(json.error, /version of Annals without manifests\. Rerun it/)
  assert.equal(headers.get('retry-after'), null)
  const again = await annals.call('POST', `/v1/exports/${plain.jobId}/rerun`, { key })
  await download(annals, key, again.json.jobId)
  const { json: manifest } = await readManifest(key, again.json.jobId)
  requireProven({ ...plain, manifest }, vkeys, /Seq 1 to 12 are in the signed ledger/)
  const complete = await exportWithManifest(key, { evidence: 'COMPLETE' })
  assert.deepEqual((await forget(complete.jobId)).json, complete.manifest)
})

test('the event before a complete export proves its start, hot and archived', async () => {
  const company = await annals.createCompany()
  const { workspaceKey: key } = company
  const receivedMs: number[] = []
  for (let day = 0; day < 6; day += 1) {
    await storeEvents(annals, key, EVENTS.slice(0, 2))
    receivedMs.push(clock())
    advance(DAY_MS)
  }
  await sign(company)
  const vkeys = await vkeysOf(annals, company.workspaces)
  const from = timeOf((receivedMs[3] ?? 0) + 1)
  const filters = { from, to: timeOf(clock()), category: 'billing' }
  const options = { filters, evidence: 'COMPLETE', source: 'HOT_AND_ARCHIVED' }
  const check = async () => {
    const evidence = await exportWithManifest(key, options)
    const [{ before, firstSeq }] = evidence.manifest.workspaces
    assert.deepEqual([before.stub, before.seq, firstSeq], [true, 6, 7])
    const pattern = /seq 6, the last event before the export, was received more than 24 hours/
    requireProven(evidence, vkeys, pattern)
    for (const change of [
      { receivedAt: timeOf(receivedMs[0] ?? 0) },
      { seq: 5 },
      { prevHash: before.hash },
      { hash: before.prevHash },
      { workspaceId: company.project.id },
      { actor: null },
    ]) {
      const forged = changed(evidence.manifest, { before: { ...before, ...change } })
      assert.equal(verify({ ...evidence, manifest: forged }, vkeys).code, 1, JSON.stringify(change))
    }
    return evidence.jobId
  }
  await check()
  assert.equal((await archiveAll(annals)).failed, 0)
  const jobId = await check()
  // Without `from`, nothing before the first event has to be shown. All events are archived, so none are hot.
  const { manifest } = await exportWithManifest(key, { evidence: 'COMPLETE' })
  const [{ firstSeq, lastSeq, lastLeafProof, ...rest }] = manifest.workspaces
  assert.deepEqual([firstSeq, lastSeq, lastLeafProof], [null, null, null])
  assert(!('before' in rest || 'after' in rest))
  for (const file of listFiles(annals, company.workspace.id)) await annals.app.archive.delete(file)
  const { status, json } = await readManifest(key, jobId)
  assert.deepEqual([status, json.code], [503, 'unavailable'])
})

function changed(manifest: Json, change: object): Json {
  return {
    ...manifest,
    workspaces: manifest.workspaces.map((one: object) => ({ ...one, ...change })),
  }
}

test('the verifier finds every manifest change that contradicts the ledger', async () => {
  const company = await annals.createCompany({ workspaces: ['One', 'Two'] })
  const [one, two] = company.workspaces
  assert(one && two)
  for (const { workspaceKey } of [one, two]) await storeEvents(annals, workspaceKey, EVENTS)
  await sign(company)
  const vkeys = await vkeysOf(annals, company.workspaces)
  const filters = { category: 'billing', workspaceId: one.id }
  const complete = await exportWithManifest(company.companyKey, { filters, evidence: 'COMPLETE' })
  const other = await exportWithManifest(company.companyKey, { filters: { workspaceId: two.id } })
  const [workspace] = complete.manifest.workspaces
  const [stranger] = other.manifest.workspaces
  const { checkpoint, lastLeafProof: proof } = workspace
  const codeOf = (manifest: Json, evidence = complete) =>
    verify({ ...evidence, manifest }, vkeys).code
  for (const evidence of [complete, other]) assert.equal(codeOf(evidence.manifest, evidence), 0)

  const { manifest } = complete
  for (const change of [
    { filters: { ...filters, category: 'auth' } },
    { filters: { workspaceId: one.id } },
    { filters: { ...filters, action: 'action 0' } },
    { filters: { ...filters, from: timeOf(clock() + DAY_MS) } },
    { rows: 5 },
    { sha256: other.manifest.sha256 },
    { evidence: 'NONE' },
    { evidence: 'MEMBERSHIP' },
    { workspaces: [stranger] },
    { workspaces: [] },
  ]) {
    assert.equal(codeOf({ ...manifest, ...change }), 1, JSON.stringify(change))
  }
  for (const change of [
    { workspaceId: two.id },
    { origin: stranger.origin },
    { firstSeq: 2 },
    { firstSeq: null, lastSeq: null },
    { lastSeq: 11 },
    { checkpoint: stranger.checkpoint },
    { checkpoint: checkpoint.replace('\n12\n', '\n13\n') },
    { checkpoint: checkpoint.replace(/\n\n.*/s, `\n\n${stranger.checkpoint.split('\n\n')[1]}`) },
    { lastLeafProof: stranger.lastLeafProof },
    { lastLeafProof: { ...proof, index: 10 } },
    { lastLeafProof: { ...proof, size: 11 } },
    { lastLeafProof: { ...proof, hashes: proof.hashes.slice(1) } },
    { lastLeafProof: { ...proof, hashes: [...proof.hashes, proof.hashes[0]] } },
  ]) {
    const code = codeOf(changed(manifest, change))
    assert(
      code === 1 || (code === 2 && 'checkpoint' in change),
      `${code} ${JSON.stringify(change)}`,
    )
  }
  for (const change of [
    { version: 2 },
    { format: 'CSV' },
    { evidence: 'ALL' },
    { rows: null },
    { workspaces: [workspace, workspace] },
    changed(manifest, { checkpoint: null }),
    changed(manifest, { lastLeafProof: null }),
  ]) {
    assert.equal(codeOf({ ...manifest, ...change }), 2, JSON.stringify(change))
  }
  const emptied = { ...manifest, rows: 0, sha256: hash('sha256', ''), workspaces: [] }
  assert.equal(codeOf(emptied, { ...complete, file: '' }), 2)
  assert.equal(codeOf({ ...other.manifest, format: 'CSV' }, other), 2)
  const withoutCheckpoint = changed(other.manifest, { checkpoint: null })
  assert.equal(codeOf(withoutCheckpoint, other), 2)
})

test('the verifier names the ledger of a workspace that was removed', async () => {
  const company = await annals.createCompany({ workspaces: ['One', 'Two'] })
  for (const { workspaceKey } of company.workspaces) await storeEvents(annals, workspaceKey, EVENTS)
  await sign(company)
  const vkeys = await vkeysOf(annals, company.workspaces)
  const [first] = company.workspaces.map(({ id }) => id)
  const { companyKey: key } = company
  const evidence = await exportWithManifest(key, { filters: { workspaceId: first ?? '' } })
  const forged = { ...evidence, manifest: { ...evidence.manifest, filters: {} } }
  requireProven(forged, vkeys, /Anything about the ledger .*\. Its key was given, but/)
})

test('no manifest verifies after an event was rewritten or a tile was changed', async () => {
  const company = await annals.createCompany()
  const { workspaceKey: key, workspace } = company
  await storeEvents(annals, key, EVENTS)
  await sign(company)
  const vkeys = await vkeysOf(annals, company.workspaces)
  const run = (sql: string) => query(annals.database.connection, sql)
  await run(
    `update event set hash = sha256(hash) where workspace_id = '${workspace.id}' and seq = 12`,
  )
  const evidence = await exportWithManifest(key)
  assert.equal(verify(evidence, vkeys).code, 1)
  await run(`update tree_tile set hashes = set_byte(hashes, 2, 255 - get_byte(hashes, 2))
              where workspace_id = '${workspace.id}'`)
  const { status, json } = await readManifest(key, evidence.jobId)
  assert.deepEqual([status, json.code], [503, 'unavailable'])
})

test('without an archive, there is no manifest', async () => {
  await using bare = await startTestApp({ hasArchive: false })
  const { workspaceKey: key } = await bare.createCompany()
  const jobId = await makeExport(bare, key)
  await download(bare, key, jobId)
  const { status, json, headers } = await bare.call('GET', `/v1/exports/${jobId}/manifest`, { key })
  assert.deepEqual([status, json.code], [503, 'unavailable'])
  assert(Number(headers.get('retry-after')) > 0)
})

test('a manifest waits for the restore of the file with the event before the export', async () => {
  await using bucket = await startWithBucket()
  const { annals: cold, s3 } = bucket
  const { workspaceKey: key, workspace } = await cold.createCompany()
  await storeEvents(cold, key, EVENTS)
  await signWhole(createSigner(cold), workspace.id)
  assert.equal((await archiveAll(cold)).failed, 0)
  bucket.advance(3 * DAY_MS)
  await storeEvents(cold, key, EVENTS)
  await signWhole(createSigner(cold), workspace.id)
  const filters = { from: timeOf(bucket.clock() - DAY_MS) }
  const jobId = await makeExport(cold, key, { filters, evidence: 'COMPLETE' })
  const { text: file } = await download(cold, key, jobId)
  const [path = ''] = await listPaths(cold, workspace.id)
  s3.freeze(path, 'GLACIER')
  const read = () => cold.call('GET', `/v1/exports/${jobId}/manifest`, { key })
  const { status, json, headers } = await read()
  assert.deepEqual([status, json.code], [503, 'archive_restoring'])
  assert.equal(headers.get('retry-after'), '300')
  s3.finishRestore(path)
  const { json: manifest } = await read()
  const { vkey } = manifest.workspaces[0]
  requireProven({ jobId, file, manifest }, [vkey], /seq 12, the last event before the export/)
})
