import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { archiveAll } from '../harness/archive/archive.ts'
import { download, makeExport, readJob, storeEvents } from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { runVerifier, temporaryFiles, VERIFIER_PATH } from '../harness/proof/verifier.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const write = temporaryFiles()
const COMMAND = join(import.meta.dirname, '../../../bin/annals-verify')

/** Events of every shape that can be hard to canonicalize. */
const EVENTS = Array.from({ length: 300 }, (_, nth) => ({
  category: nth % 2 === 0 ? 'auth' : 'quote " \\ \u0007 \u2028 \ufffd \u{1f600}',
  action: `action ${nth}`,
  ...(nth % 3 > 0 && { actor: { id: `u${nth}`, email: 'ada@example.com' } }),
  ...(nth % 4 > 0 && { resource: { type: 'file', id: `r${nth}` } }),
  ...(nth % 5 > 0 && {
    metadata: {
      b: 1,
      a: [0.1, 1e21, -0, 1e-7, 123456789012345680000, null, true, '\u0000'.length],
      '10': { '9': 1, é: '\t', '\ufb33': 1, '\u{1f600}': 2 },
      'x,"traceId":null': '"sealed":{}',
    },
  }),
}))

test('real exports verify, hot, archived and of several workspaces', async () => {
  const company = await annals.createCompany({ workspaces: ['One', 'Two'] })
  for (const { workspaceKey } of company.workspaces) {
    await storeEvents(annals, workspaceKey, EVENTS)
  }
  const verifyExport = async (options: object) => {
    const job = await makeExport(annals, company.companyKey, options)
    const { text } = await download(annals, company.companyKey, job)
    const path = write('events.jsonl', text)
    const { code, err } = runVerifier(['export', path, '--no-gaps'])
    assert.equal(code, 2, err)
    assert.match(err, /has 600 rows of 2 workspaces, and each matches its hash/)
    const bad = runVerifier([
      'export',
      write('bad.jsonl', text.replace('action 77"', 'action 78"')),
    ])
    assert.equal(bad.code, 1)
    assert.match(bad.out, /^TAMPERED: Event [0-9a-f-]{36} \(seq 78, line 78\): its content/)
  }
  await verifyExport({})
  assert.equal((await archiveAll(annals)).failed, 0)
  const times = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
  await verifyExport({ source: 'ARCHIVED', filters: times })
})

test('a real filtered export is consistent, and its CSV file matches its manifest', async () => {
  const { workspaceKey } = await annals.createCompany()
  await storeEvents(annals, workspaceKey, EVENTS)
  const filters = { category: 'auth' }
  const job = await makeExport(annals, workspaceKey, { filters })
  const { text } = await download(annals, workspaceKey, job)
  const { code, err } = runVerifier(['export', write('filtered.jsonl', text)])
  assert.equal(code, 2)
  assert.match(err, /149 gaps of seq/)
  const csvJob = await makeExport(annals, workspaceKey, { format: 'CSV', filters })
  const csv = await download(annals, workspaceKey, csvJob)
  const { sha256, rowsExported } = await readJob(annals, workspaceKey, csvJob)
  const manifest = { version: 1, jobId: csvJob, format: 'CSV', filters, evidence: 'NONE' }
  const file = write('manifest.json', { ...manifest, rows: rowsExported, sha256, workspaces: [] })
  const verdict = runVerifier(['export', write('events.csv', csv.text), '--manifest', file])
  assert.equal(verdict.code, 2)
  assert.match(verdict.err, /matches the SHA-256 in the manifest, but the manifest is not signed/)
})

test('anyone can download the verifier, and the copy runs', async () => {
  const { status, headers, text } = await annals.call('GET', '/annals-verify.mjs')
  assert.equal(status, 200)
  assert.equal(headers.get('content-type'), 'text/javascript; charset=utf-8')
  assert.equal(headers.get('cache-control'), 'no-cache')
  assert.equal(text, readFileSync(VERIFIER_PATH, 'utf8'))
  const known = { 'if-none-match': headers.get('etag') ?? '' }
  assert.equal((await annals.call('GET', '/annals-verify.mjs', { headers: known })).status, 304)
  const copy = write('annals-verify.mjs', text)
  const { stdout, status: code } = spawnSync(process.execPath, [copy, '--help'], {
    encoding: 'utf8',
  })
  assert.equal(code, 0)
  assert.match(stdout, /^annals-verify: check exports/)
})

test('the command passes arguments, output and exit codes on', () => {
  const missing = spawnSync(COMMAND, ['export', '/nonexistent'], { encoding: 'utf8' })
  assert.equal(missing.status, 2)
  assert.match(missing.stderr, /^CANNOT JUDGE: "\/nonexistent" can't be read/)
  const damaged = spawnSync(COMMAND, ['export', write('damaged', '{\n')], { encoding: 'utf8' })
  assert.equal(damaged.status, 1)
  assert.match(damaged.stdout, /^TAMPERED: Line 1 is not valid JSON/)
})

test('the verifier imports nothing but Node, and nothing that opens connections', () => {
  const text = readFileSync(VERIFIER_PATH, 'utf8')
  const imports = [...text.matchAll(/^import .* from '([^']+)'$/gm)].map(([, name]) => name)
  assert.deepEqual(imports, ['node:crypto', 'node:fs', 'node:url'])
  assert.doesNotMatch(text, /\bimport\(|\brequire\(|\bfetch\(|WebSocket|process\.binding/)
})
