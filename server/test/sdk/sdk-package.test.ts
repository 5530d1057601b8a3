import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import type * as sdkCore from '../../../sdk/src/index.ts'
import { Annals } from '../../../sdk/src/index.ts'
import type * as sdkNode from '../../../sdk/src/node/index.ts'
import { installSdk } from '../harness/app/sdk-package.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { ANY_DESTINATION } from '../harness/webhook/webhooks.ts'

const CORE_BYTES_MAX = 15_000
const MIDDLEWARE = ['express', 'fastify', 'hono', 'next']
const run = promisify(execFile)
const { resolve } = createRequire(join(import.meta.dirname, '../../../sdk/package.json'))

const installed = await installSdk()
after(() => installed[Symbol.asyncDispose]())
const service = await startTestApp({ env: { ...ANY_DESTINATION, ANNALS_RATE_LIMITS: 'off' } })
after(() => service[Symbol.asyncDispose]())

/** Loads the core into a context that has the globals of the web and none of Node, and uses it. */
const WEB_PROGRAM = `
  import { readFileSync } from 'node:fs'
  import { dirname, join } from 'node:path'
  import { createContext, SourceTextModule } from 'node:vm'

  const [core, baseUrl, apiKey] = process.argv.slice(2)
  const names = ['AbortController', 'AbortSignal', 'Headers', 'ReadableStream', 'Request', 'Response',
    'TextDecoder', 'TextEncoder', 'TransformStream', 'URL', 'URLSearchParams', 'atob', 'clearTimeout',
    'crypto', 'fetch', 'performance', 'setTimeout']
  const web = Object.fromEntries(names.map((name) => [name, globalThis[name]]))
  const context = createContext({ ...web, options: { baseUrl, apiKey } })
  const modules = new Map()
  const load = (path) => {
    if (!modules.has(path)) {
      const text = readFileSync(path, 'utf8')
      modules.set(path, new SourceTextModule(text, { context, identifier: path }))
    }
    return modules.get(path)
  }
  const use = new SourceTextModule(\`
    import { Annals, verifyWebhook } from './index.js'
    const annals = new Annals(options)
    const { id } = await annals.events.create({ category: 'c', action: 'web' })
    const recorder = annals.recorder()
    recorder.record({ category: 'c', action: 'recorded' })
    await recorder.close()
    const request = new Request('http://x', { method: 'POST', body: '{}' })
    const refused = await verifyWebhook(request, 'secret').catch(({ code }) => code)
    const names = []
    for await (const event of annals.events.feed()) names.push(event.action)
    export const result = [(await annals.events.get(id)).action, names, refused]
  \`, { context, identifier: join(dirname(core), 'use.js') })
  await use.link((target, { identifier }) => load(join(dirname(identifier), target)))
  await use.evaluate()
  console.log(JSON.stringify(use.namespace.result))
`

/** The files that a module of the package loads, and what they import from elsewhere. */
function loaded(entry: string): { files: string[]; others: string[] } {
  const files = [join(installed.sdk, 'dist', entry)]
  const others: string[] = []
  for (const file of files) {
    const text = readFileSync(file, 'utf8')
    for (const [, target = ''] of text.matchAll(/(?:from |import |import\()['"]([^'"]+)['"]/g)) {
      const path = join(dirname(file), target)
      if (!target.startsWith('.')) others.push(target)
      else if (!files.includes(path)) files.push(path)
    }
  }
  return { files, others }
}

test('the package contains what it needs and nothing else', () => {
  const names = globSync('**/*.*', { cwd: installed.sdk })
  const unexpected = names.filter(
    (name) =>
      !/^(dist\/.+\.(js|d\.ts)|verifier\/annals-verify\.mjs|package\.json|README\.md)$/.test(name),
  )
  assert.deepEqual(unexpected, [])
  assert.match(readFileSync(join(installed.sdk, 'LICENSE'), 'utf8'), /Apache License/)
  assert.deepEqual(
    names.filter((name) => name.includes('.test.')),
    [],
  )
  const { dependencies = {} }: { dependencies?: object } = JSON.parse(
    readFileSync(join(installed.sdk, 'package.json'), 'utf8'),
  )
  assert.deepEqual(dependencies, {})
})

test('publint finds no problem', async () => {
  const publint = resolve('publint').replace(/src\/.*|dist\/.*/, 'src/cli.js')
  const { stdout } = await run(process.execPath, [publint, 'run', installed.tarball, '--strict'])
  assert.match(stdout, /All good/)
})

test('the types resolve for every import, as attw checks it', async () => {
  const attw = join(dirname(resolve('@arethetypeswrong/cli/package.json')), 'dist/index.js')
  const args = [attw, installed.tarball, '--profile', 'esm-only', '--format', 'json']
  const { stdout } = await run(process.execPath, args, { maxBuffer: 2 ** 26 })
  const { analysis }: { analysis: { problems: object[]; entrypoints: object } } = JSON.parse(stdout)
  // The profile leaves out `require` of CommonJS, which Node 20 and older resolutions don't support.
  const problems = analysis.problems.filter(
    (problem) =>
      !('kind' in problem && problem.kind === 'CJSResolvesToESM') &&
      !('resolutionKind' in problem && problem.resolutionKind === 'node10'),
  )
  assert.deepEqual(problems, [])
  assert.equal(Object.keys(analysis.entrypoints).length, 7)
})

test('the core is at most 15 kB, and only the Node part imports from Node', () => {
  const core = loaded('index.js')
  assert.deepEqual(core.others, [])
  const text = core.files.map((file) => readFileSync(file, 'utf8')).join('\n')
  const bytes = gzipSync(text, { level: 9 }).length
  assert(bytes <= CORE_BYTES_MAX, `${bytes} bytes`)
  for (const name of MIDDLEWARE) assert.deepEqual(loaded(`middleware/${name}.js`).others, [])
  const node = loaded('node/index.js').others
  assert(node.length > 0)
  assert.deepEqual(
    node.filter((name) => !name.startsWith('node:')),
    [],
  )
  // The core must not load it either way.
  const nodeFiles = core.files.filter((file) => relative(installed.sdk, file).includes('node/'))
  assert.deepEqual(nodeFiles, [])
})

test('the core works where only the globals of the web exist', async () => {
  const { workspaceKey } = await service.createCompany()
  const script = join(installed.folder, 'web.mjs')
  writeFileSync(script, WEB_PROGRAM)
  const args = ['--no-warnings', '--experimental-vm-modules', script]
  const core = join(installed.sdk, 'dist/index.js')
  const { stdout } = await run(process.execPath, [...args, core, service.url, workspaceKey])
  assert.deepEqual(JSON.parse(stdout), ['web', ['web', 'recorded'], 'missing_signature'])
})

test('the package verifies an export offline, and detects a changed character', async () => {
  const load = async (entry: string) => await import(join(installed.sdk, 'dist', entry))
  const core: typeof sdkCore = await load('index.js')
  const node: typeof sdkNode = await load('node/index.js')
  const { workspaceKey: apiKey } = await service.createCompany()
  const annals = new core.Annals({ apiKey, baseUrl: service.url })
  await annals.events.batch([
    { category: 'c', action: 'one' },
    { category: 'c', action: 'two' },
  ])
  const { jobId } = await annals.exports.create({ source: 'HOT', format: 'JSONL' })
  const path = join(installed.folder, 'events.jsonl')
  assert.equal((await node.downloadExport(annals, jobId, path)).rows, 2)
  // The signer needs a moment.
  const manifest = await eventually(() => annals.exports.manifest(jobId, { retriesMax: 0 }))
  const manifestPath = join(installed.folder, 'manifest.json')
  writeFileSync(manifestPath, JSON.stringify(manifest))
  const vkeys = manifest.workspaces.map(({ vkey }) => vkey)
  const proven = await node.verifyExport(path, { manifestPath, vkeys })
  assert.equal(proven.verdict, 'PROVEN', proven.report)
  assert.match(proven.report, /Not proven/)
  const unknown = await node.verifyExport(path, { manifestPath, vkeys: [] })
  assert.equal(unknown.verdict, 'CANNOT_JUDGE', unknown.report)
  writeFileSync(path, readFileSync(path, 'utf8').replace('"one"', '"One"'))
  const changed = await node.verifyExport(path, { manifestPath, vkeys })
  assert.equal(changed.verdict, 'TAMPERED', changed.report)
})

for (const name of MIDDLEWARE) {
  test(`the ${name} example records its requests and receives webhooks`, async () => {
    const company = await service.createCompany()
    const secret = `secret of ${name}`
    const annals = new Annals({ apiKey: company.workspaceKey, baseUrl: service.url })
    const program =
      name === 'next'
        ? [
            join(import.meta.dirname, '../harness/http/next-server.ts'),
            join(installed.folder, 'examples/next'),
          ]
        : [join(installed.folder, `examples/${name}.ts`)]
    const child = spawn(process.execPath, program, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH,
        PORT: '0',
        ANNALS_API_URL: service.url,
        ANNALS_API_KEY: company.workspaceKey,
        ANNALS_WEBHOOK_SECRET: secret,
      },
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    const exited = once(child, 'exit')
    const port = await eventually(() => {
      const found = /listening[^]*?port: (\d+)/.exec(output)?.[1]
      assert(found, output)
      return found
    })
    const url = `http://127.0.0.1:${port}`
    const asCompany = new Annals({ apiKey: company.companyKey, baseUrl: service.url })
    await asCompany.webhooks.create(company.workspace.id, {
      url: `${url}/annals`,
      customSecret: secret,
    })
    const paid = await fetch(`${url}/invoices/42/pay?token=x`, {
      method: 'POST',
      headers: { 'x-user': 'ann' },
    })
    assert.deepEqual(await paid.json(), { paid: true })
    const forged = await fetch(`${url}/annals`, { method: 'POST', body: '{"action":"forged"}' })
    assert.equal(forged.status, 401)
    await eventually(() => assert.match(output, /received POST \/invoices\/:id\/pay/))
    child.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null])
    const [event, ...others] = (await annals.events.list().take(9)).filter(
      ({ action }) => action === 'POST /invoices/:id/pay',
    )
    assert.deepEqual(others, [])
    assert.equal(event?.actor?.id, 'ann')
    assert.deepEqual(event?.metadata?.query, { token: '[redacted]' })
    assert.equal(event?.metadata?.status, 200)
    assert.doesNotMatch(output, /forged/)
  })
}
