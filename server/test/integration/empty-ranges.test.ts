import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { archiveAll } from '../harness/archive/archive.ts'
import { enroll, openEvidencePack } from '../harness/dashboard/console.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { download, makeExport, storeEvents } from '../harness/export/exports.ts'
import { createSigner, signWhole } from '../harness/proof/proof.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'
import { readZip } from '../harness/export/zip-reader.ts'
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
type Evidence = { file: string; manifest: Json }

const timeOf = (ms: number) => new Date(ms).toISOString()
const EVENTS = [1, 2, 3].map((nth) => ({ category: 'auth', action: `action ${nth}` }))

async function sign({ workspaces }: Company): Promise<void> {
  for (const { id } of workspaces) await signWhole(signer, id)
}

/** One workspace with events in the period, one with older events only, and one without events. */
async function createQuiet() {
  const company = await annals.createCompany({ workspaces: ['Busy', 'Idle', 'Empty'] })
  const [busy, idle, empty] = company.workspaces
  assert(busy && idle && empty)
  for (const { workspaceKey } of [busy, idle]) await storeEvents(annals, workspaceKey, EVENTS)
  advance(3 * DAY_MS)
  const from = timeOf(clock())
  await storeEvents(annals, busy.workspaceKey, EVENTS)
  advance(DAY_MS)
  await sign(company)
  const filters = { from, to: timeOf(clock() + DAY_MS) }
  const request = { source: 'HOT_AND_ARCHIVED', evidence: 'COMPLETE', filters }
  return { company, busy, idle, empty, request }
}

async function readManifest(key: string, jobId: string): Promise<Json> {
  const { status, json, text } = await annals.call('GET', `/v1/exports/${jobId}/manifest`, { key })
  assert.equal(status, 200, text)
  return json
}

async function verify(evidence: Evidence, { workspaces }: Company) {
  return verifyExport(write, evidence, await vkeysOf(annals, workspaces))
}

async function requireProven(evidence: Evidence, company: Company, patterns: readonly RegExp[]) {
  const { code, out, err } = await verify(evidence, company)
  assert.equal(code, 0, out + err)
  const [proven = ''] = out.split('Only as good as the manifest')
  for (const pattern of patterns) assert.match(proven, pattern)
}

const entryOf = ({ manifest }: Evidence, { id }: { id: string }) =>
  manifest.workspaces.find(({ workspaceId }: Json) => workspaceId === id)

test('a complete export proves that nothing happened, hot and archived', async () => {
  const { company, busy, idle, empty, request } = await createQuiet()
  const key = company.companyKey
  const check = async () => {
    const jobId = await makeExport(annals, key, request)
    const { text: file } = await download(annals, key, jobId)
    const evidence = { file, manifest: await readManifest(key, jobId) }
    const span = (workspace: { id: string }) => {
      const { firstSeq, lastSeq, before, lastLeafProof } = entryOf(evidence, workspace)
      return [firstSeq, lastSeq, before?.seq, lastLeafProof?.index]
    }
    assert.deepEqual(span(busy), [4, 6, 3, 5])
    assert.deepEqual(span(idle), [null, null, 3, 2])
    assert.deepEqual(span(empty), [null, null, undefined, undefined])
    await requireProven(evidence, company, [
      new RegExp(`Workspace ${idle.id}: no event matches the filters`),
      new RegExp(`Workspace ${empty.id}: it had no events\\. The key `),
      new RegExp(`Workspace ${busy.id}: no event from seq 4 to 6 that matches .* is missing`),
    ])
    return { jobId, file }
  }
  await check()
  assert.equal((await archiveAll(annals)).failed, 0)
  const { jobId, file } = await check()

  // Later events don't make the claim wrong, not even in a rerun.
  advance(DAY_MS)
  for (const { workspaceKey } of [busy, idle, empty]) {
    await storeEvents(annals, workspaceKey, EVENTS)
  }
  await sign(company)
  const again = await annals.call('POST', `/v1/exports/${jobId}/rerun`, { key })
  await download(annals, key, again.json.jobId)
  for (const id of [jobId, again.json.jobId]) {
    const evidence = { file, manifest: await readManifest(key, id) }
    await requireProven(evidence, company, [
      new RegExp(`Workspace ${idle.id}: no event matches the filters: .* Seq 4, the next event`),
      new RegExp(`Workspace ${empty.id}: it had no events\\. Seq 1, the next event`),
      new RegExp(`Workspace ${busy.id}: Seq 7, the next event`),
    ])
  }
})

test('the verifier finds events that a manifest hides', async () => {
  const { company, busy, request } = await createQuiet()
  const key = company.companyKey
  const ofBusy = { ...request, filters: { ...request.filters, workspaceId: busy.id } }
  const honest = await makeExport(annals, key, ofBusy)
  const { text: file } = await download(annals, key, honest)
  const full = await readManifest(key, honest)
  assert.equal((await verify({ file, manifest: full }, company)).code, 0)
  const [entry] = full.workspaces
  const proofOf = async (seq: number) => {
    const eventId = JSON.parse(file.split('\n')[seq - 4] ?? '').id
    const { json } = await annals.call('GET', `/v1/events/${eventId}/proof`, { key })
    return { index: json.index, size: json.size, hashes: json.hashes }
  }
  const before = await annals.call('GET', `/v1/events/${entry.before.id}/proof`, { key })
  const { index, size, hashes } = before.json
  const denied = {
    ...entry,
    firstSeq: null,
    lastSeq: null,
    lastLeafProof: { index, size, hashes },
  }
  const {
    actor: _a,
    resource: _r,
    metadata: _m,
    salts: _s,
    ...core
  } = JSON.parse(file.split('\n')[0] ?? '')
  const shown = { ...denied, after: { stub: true, ...core }, afterLeafProof: await proofOf(4) }
  const emptyFile = { rows: 0, sha256: emptySha256 }
  const claim = (workspace: object) => ({
    file: '',
    manifest: { ...full, ...emptyFile, workspaces: [workspace] },
  })
  const named = await verify(claim(shown), company)
  assert.equal(named.code, 1, named.out + named.err)
  assert(named.out.includes(`Event ${core.id} (seq 4)`), named.out)
  assert.match(named.out, /before the export at .*, but the export ends with seq 3/)
  const hidden = await verify(claim(denied), company)
  assert.equal(hidden.code, 2)
  assert.match(hidden.err, /its signed ledger has seq 4 to 6/)
  const nothing = { ...denied, before: undefined, lastLeafProof: null }
  assert.equal((await verify(claim(nothing), company)).code, 2)
})

const emptySha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

test('an evidence pack proves that nothing happened', async () => {
  const { company, idle, empty, request } = await createQuiet()
  const owner = await enroll(annals, company, 'OWNER')
  const body = { ...request, format: 'JSONL' }
  const { json, text } = await owner.call('POST', '/dashboard/exports', { body })
  assert(json.id, text)
  const { rest } = await openEvidencePack(annals, owner, json.id)
  const files = new Map(readZip((await rest()).body).map(({ name, bytes }) => [name, bytes]))
  const read = (name: string) => files.get(name)?.toString() ?? assert.fail(name)
  for (const { id } of [idle, empty]) assert(read('README.txt').includes(id))
  const manifest = JSON.parse(read('manifest.json'))
  await requireProven({ file: read('events.jsonl'), manifest }, company, [
    new RegExp(`Workspace ${idle.id}: no event matches the filters`),
    new RegExp(`Workspace ${empty.id}: it had no events\\. The key `),
  ])
})

test('an export of archived events only says nothing about hot ones', async () => {
  const { company, idle, request } = await createQuiet()
  const key = company.companyKey
  const jobId = await makeExport(annals, key, { ...request, source: 'ARCHIVED' })
  const { text: file } = await download(annals, key, jobId)
  const manifest = await readManifest(key, jobId)
  assert.equal(manifest.snapshotAt, null)
  const { code, out, err } = await verify({ file, manifest }, company)
  assert.equal(code, 0, out + err)
  const doubt = `Not proven:.*${idle.id}: that none of its events match.*archived events only`
  assert.match(out, new RegExp(doubt, 's'))
})
