import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import {
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { Terminal, terminalSkipReason } from '../harness/app/terminal.ts'
import { listenHttp } from '../harness/http/http-server.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { runVerifier, vkeysOf } from '../harness/proof/verifier.ts'

const service = await startTestApp({ env: { ANNALS_CHECKPOINT_SECONDS: '1' } })
after(() => service[Symbol.asyncDispose]())
const folder = await mkdtempDisposable(join(tmpdir(), 'annals-client-'))
after(() => folder[Symbol.asyncDispose]())

const { workspace, workspaceKey: key } = await service.createCompany()
const env = { ANNALS_API_URL: service.url, ANNALS_API_KEY: key }
await service.call('POST', '/v1/events/batch', {
  key,
  body: {
    events: Array.from({ length: 300 }, (_, nth) => ({
      category: nth % 3 === 0 ? 'billing' : 'auth',
      action: 'a',
      metadata: { text: 'x'.repeat(500) },
    })),
  },
})

let files = 0
const newPath = () => join(folder.path, `events-${(files += 1)}.jsonl`)

async function runJson(args: readonly string[]) {
  const { code, stdout, stderr } = await runCommandInHost([...args, '--json'], env)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}
const sha256Of = (path: string) => hash('sha256', readFileSync(path))

test('an export is created and downloaded with its manifest, and both pass the offline check', async () => {
  const path = newPath()
  const args = ['exports', 'create', '--filter=category=billing', '--download', path, '--manifest']
  const { code, stdout, stderr } = await runCommandInHost([...args, '--json'], env)
  assert.equal(code, 0, stderr)
  const saved = JSON.parse(stdout)
  assert.deepEqual(
    [saved.path, saved.rows, saved.bytes, saved.sha256, saved.manifest],
    [path, 100, statSync(path).size, sha256Of(path), `${path}.manifest.json`],
  )
  const [, command = ''] = /annals-verify (.*) --vkey KEY\n$/.exec(stderr) ?? []
  assert.equal(command, `export ${path} --manifest ${path}.manifest.json`)
  const [vkey = ''] = await vkeysOf(service, [{ id: workspace.id, workspaceKey: key }])
  const verdict = runVerifier([...command.split(' '), '--vkey', vkey])
  assert.equal(verdict.code, 0, verdict.out + verdict.err)
})

test('a job that was created first is downloaded later, and downloading it again keeps the file', async () => {
  const path = newPath()
  const { jobId, status } = await runJson(['exports', 'create', '--format=CSV', '--limit=10'])
  assert.equal(status, 'PENDING')
  const first = await runJson(['exports', 'download', jobId, path])
  assert.deepEqual([first.jobId, first.rows], [jobId, 10])
  const { ino } = statSync(path)
  assert.deepEqual(await runJson(['exports', 'download', jobId, path]), first)
  assert.equal(statSync(path).ino, ino)
})

test('a file that is not the export is replaced only with --force', async () => {
  const path = newPath()
  writeFileSync(path, 'precious')
  const { jobId } = await runJson(['exports', 'create'])
  for (const args of [
    ['download', jobId, path],
    ['create', '--download', path],
  ]) {
    const { code, stderr } = await runCommandInHost(['exports', ...args], env)
    assert.equal(code, 1)
    assert.match(
      stderr,
      /already exists and is not this export\. Choose another path, or add --force\.\n$/,
    )
    assert.equal(readFileSync(path, 'utf8'), 'precious')
  }
  const { sha256 } = await runJson(['exports', 'download', jobId, path, '--force'])
  assert.equal(sha256Of(path), sha256)
})

test('a manifest of another export is replaced only with --force, and a link to a file never', async () => {
  const path = newPath()
  const [manifest, precious] = [`${path}.manifest.json`, newPath()]
  writeFileSync(precious, 'precious')
  symlinkSync(precious, manifest)
  const { jobId } = await runJson(['exports', 'create'])
  for (const args of [
    ['download', jobId, path, '--manifest'],
    ['create', '--download', path, '--manifest'],
  ]) {
    const { code, stderr } = await runCommandInHost(['exports', ...args], env)
    assert.equal(code, 1)
    assert.match(stderr, /manifest\.json already exists and is not the manifest of this export\./)
    // Nothing was downloaded.
    assert(!existsSync(path))
  }
  const saved = await runJson(['exports', 'download', jobId, path, '--manifest', '--force'])
  assert.equal(JSON.parse(readFileSync(manifest, 'utf8')).sha256, saved.sha256)
  assert.equal(readFileSync(precious, 'utf8'), 'precious')
  // The same command again keeps the file, and gets the manifest again.
  await runJson(['exports', 'download', jobId, path, '--manifest'])
})

test('a download that was interrupted leaves no file, and running it again gets the same rows', async () => {
  const path = newPath()
  const { jobId } = await runJson(['exports', 'create'])
  await using proxy = await startStallingProxy()
  await using download = new AnnalsProcess(['exports', 'download', jobId, path], {
    ...env,
    ANNALS_API_URL: proxy.url,
  })
  await eventually(() => {
    const [part] = readdirSync(folder.path).filter((name) => name.endsWith('.part'))
    assert(part && statSync(join(folder.path, part)).size > 0)
  })
  download.signal('SIGINT')
  assert.deepEqual(await download.exited, { code: 130, stdout: '', stderr: '' })
  assert.deepEqual(
    readdirSync(folder.path).filter((name) => name.endsWith('.part')),
    [],
  )
  assert(!existsSync(path))
  // The service has sent everything, so the job has ended.
  await eventually(async () => {
    const { json } = await service.call('GET', `/v1/exports/${jobId}`, { key })
    assert.equal(json.status, 'SUCCEEDED')
  })
  const saved = await runJson(['exports', 'download', jobId, path])
  const { json } = await service.call('GET', `/v1/exports/${jobId}`, { key })
  assert.notEqual(saved.jobId, jobId)
  assert.deepEqual([saved.rows, saved.sha256, sha256Of(path)], [300, json.sha256, json.sha256])
})

/** Passes on the first bytes of a download, and then nothing more. */
const startStallingProxy = () =>
  listenHttp((request, response) => void passFirstBytes(request, response), {})

async function passFirstBytes({ url = '' }: IncomingMessage, response: ServerResponse) {
  const { status, text } = await service.call('GET', url, { key })
  if (!url.endsWith('/download')) return response.writeHead(status).end(text)
  response.writeHead(status, { 'content-type': 'application/jsonl' })
  return response.write(text.slice(0, 10_000))
}

test('a download on a terminal shows its progress', { skip: terminalSkipReason() }, async () => {
  const path = newPath()
  await using terminal = new Terminal(['exports', 'create', '--download', path], env)
  assert.equal(await terminal.exited, 0, terminal.screen)
  assert.match(terminal.screen, /\d+ rows, [\d.]+ MB, [\d.]+ MB\/s/)
  assert.equal(sha256Of(path), /sha256 +(\w{64})/.exec(terminal.screen)?.[1])
})
