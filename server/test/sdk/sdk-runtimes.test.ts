import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { Annals } from '../../../sdk/src/index.ts'
import { installSdk } from '../harness/app/sdk-package.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { freePort } from '../harness/database/pgbouncer.ts'
import { eventually } from '../harness/timing/eventually.ts'

/** Paths of other runtimes. They aren't dependencies of the project: CONTRIBUTING.md says how to get them. */
const { TEST_DENO, TEST_BUN, TEST_WORKERD } = process.env
const skipWithout = (name: string) => !process.env[name] && `${name} is not set`
const run = promisify(execFile)

/** What edge functions do with the core of the SDK. */
const CORE_PROGRAM = `
  import { Annals, AnnalsApiError, verifyWebhook } from '@annals/sdk'

  export async function useCore(baseUrl, apiKey) {
    const annals = new Annals({ apiKey, baseUrl })
    const { id } = await annals.events.create({ category: 'c', action: 'created' })
    await annals.events.batch([{ category: 'c', action: 'batched' }])
    const recorder = annals.recorder()
    recorder.record({ category: 'c', action: 'recorded', metadata: { 'a"b': 1, 'a\\\\b': 'é🎈' } })
    await recorder.close()
    const names = []
    for await (const event of annals.events.feed()) names.push(event.action)
    const [newest] = await annals.events.list().take(1)
    const missing = await annals.events.get(crypto.randomUUID()).catch((error) => error)
    return {
      created: (await annals.events.get(id)).action,
      names,
      metadata: newest.metadata,
      missing: [missing instanceof AnnalsApiError, missing.status, missing.code],
      delivery: await receiveDelivery(),
      forged: await receiveDelivery('another secret').catch(({ code }) => code),
    }
  }

  async function receiveDelivery(signingSecret = 'secret') {
    const seconds = Math.floor(Date.now() / 1_000)
    const body = JSON.stringify({ id: 'e-1', category: 'c', action: 'delivered' })
    const bytes = (text) => new TextEncoder().encode(text)
    const algorithm = { name: 'HMAC', hash: 'SHA-256' }
    const key = await crypto.subtle.importKey('raw', bytes(signingSecret), algorithm, false, ['sign'])
    const signature = await crypto.subtle.sign('HMAC', key, bytes(\`d-1.\${seconds}.\${body}\`))
    const headers = {
      'webhook-id': 'd-1',
      'webhook-timestamp': String(seconds),
      'webhook-signature': 'v1,' + btoa(String.fromCharCode(...new Uint8Array(signature))),
      'x-service-delivery': 'd-1',
      'x-service-sequence': '1',
      'x-service-attempt': '1',
    }
    const request = new Request('http://shop.example/annals', { method: 'POST', headers, body })
    return (await verifyWebhook(request, 'secret')).event.action
  }
`
const CORE_RESULT = {
  created: 'created',
  names: ['created', 'batched', 'recorded'],
  metadata: { 'a"b': 1, 'a\\b': 'é🎈' },
  missing: [true, 404, 'not_found'],
  delivery: 'delivered',
  forged: 'invalid_signature',
}

/** What servers do with the Node part, which Deno and Bun can load. */
const SERVER_PROGRAM = `
  import { join } from 'node:path'
  import { Annals } from '@annals/sdk'
  import { diskSpool, downloadExport } from '@annals/sdk/node'
  import { useCore } from './core.mjs'

  const [baseUrl, apiKey, folder] = process.argv.slice(2)
  const core = await useCore(baseUrl, apiKey)
  const annals = new Annals({ apiKey, baseUrl })
  const recorder = annals.recorder({ spool: diskSpool({ folder: join(folder, 'spool') }) })
  recorder.record({ category: 'c', action: 'spooled' })
  await recorder.close()
  const { jobId } = await annals.exports.create({ source: 'HOT', format: 'JSONL' })
  const { rows } = await downloadExport(annals, jobId, join(folder, 'events.jsonl'))
  console.log(JSON.stringify({ core, jobId, rows }))
`
const VERIFY_PROGRAM = `
  import { readFileSync } from 'node:fs'
  import { verifyExport } from '@annals/sdk/node'

  const { workspaces } = JSON.parse(readFileSync('manifest.json', 'utf8'))
  const options = { manifestPath: 'manifest.json', vkeys: workspaces.map(({ vkey }) => vkey) }
  console.log((await verifyExport('events.jsonl', options)).verdict)
`

/** The service and the folder that a program runs in. */
async function prepare() {
  await using started = new AsyncDisposableStack()
  const { folder, sdk } = started.use(await installSdk())
  writeFileSync(join(folder, 'core.mjs'), CORE_PROGRAM)
  const service = started.use(await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } }))
  const { workspaceKey } = await service.createCompany()
  const kept = started.move()
  const dispose = () => kept.disposeAsync()
  return { folder, sdk, url: service.url, workspaceKey, [Symbol.asyncDispose]: dispose }
}

async function runServerPrograms(program: string, args: string[]): Promise<void> {
  await using prepared = await prepare()
  const { folder, url, workspaceKey } = prepared
  const options = { cwd: folder, env: { ...process.env, NODE_OPTIONS: '' } }
  const runFile = async (name: string, text: string, ...rest: string[]) => {
    writeFileSync(join(folder, name), text)
    const { stdout } = await run(program, [...args, name, ...rest], options)
    return stdout.trim()
  }
  const printed = await runFile('server.mjs', SERVER_PROGRAM, url, workspaceKey, folder)
  const { jobId, ...result }: { jobId: string } = JSON.parse(printed)
  assert.deepEqual(result, { core: CORE_RESULT, rows: 4 })
  const annals = new Annals({ apiKey: workspaceKey, baseUrl: url })
  // The signer needs a moment.
  const manifest = await eventually(() => annals.exports.manifest(jobId, { retriesMax: 0 }))
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest))
  assert.equal(await runFile('verify.mjs', VERIFY_PROGRAM), 'PROVEN')
  const path = join(folder, 'events.jsonl')
  writeFileSync(path, readFileSync(path, 'utf8').replace('"spooled"', '"Spooled"'))
  assert.equal(await runFile('verify.mjs', VERIFY_PROGRAM), 'TAMPERED')
}

test('the SDK works in Deno', { skip: skipWithout('TEST_DENO') }, async () => {
  const allowed = ['read', 'write', 'run', 'env', 'sys', 'net=127.0.0.1']
  const permissions = allowed.map((name) => `--allow-${name}`)
  await runServerPrograms(String(TEST_DENO), [
    'run',
    '--quiet',
    '--node-modules-dir=manual',
    ...permissions,
  ])
})

test('the SDK works in Bun', { skip: skipWithout('TEST_BUN') }, async () => {
  await runServerPrograms(String(TEST_BUN), ['run'])
})

test('the core works at the edge, in workerd', { skip: skipWithout('TEST_WORKERD') }, async () => {
  await using prepared = await prepare()
  const { folder, sdk, url, workspaceKey } = prepared
  const port = await freePort()
  writeFileSync(join(folder, 'worker.mjs'), WORKER)
  writeFileSync(join(folder, 'config.capnp'), workerConfig(sdk, port))
  const args = ['serve', join(folder, 'config.capnp')]
  const worker = spawn(String(TEST_WORKERD), args, { stdio: 'inherit' })
  try {
    const query = new URLSearchParams({ baseUrl: url, apiKey: workspaceKey })
    const response = await eventually(() => fetch(`http://127.0.0.1:${port}/?${query.toString()}`))
    assert.deepEqual(await response.json(), CORE_RESULT)
  } finally {
    worker.kill()
  }
})

const WORKER = `
  import { useCore } from './core.mjs'

  export default {
    async fetch(request) {
      const { searchParams } = new URL(request.url)
      const result = await useCore(searchParams.get('baseUrl'), searchParams.get('apiKey'))
      return Response.json(result)
    },
  }
`

function workerConfig(sdk: string, port: number): string {
  const core = globSync('dist/**/*.js', { cwd: sdk })
  const files = core.map((path) => [`@annals/sdk/${path}`, `node_modules/@annals/sdk/${path}`])
  const modules = [['worker.mjs', 'worker.mjs'], ['core.mjs', 'core.mjs'], ...files]
  const listed = modules.map(([name, path]) => `(name = "${name}", esModule = embed "${path}")`)
  return `
    using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (
      services = [
        (name = "main", worker = .worker),
        (name = "loopback", network = (allow = ["local"])),
      ],
      sockets = [(address = "127.0.0.1:${port}", http = (), service = "main")],
    );
    const worker :Workerd.Worker = (
      compatibilityDate = "2026-01-01",
      globalOutbound = "loopback",
      modules = [
        ${listed.join(',\n        ')},
        (name = "@annals/sdk", esModule = "export * from './sdk/dist/index.js'"),
      ],
    );
  `
}
