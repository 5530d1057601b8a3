import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { ROOT } from '../../tools/package/runtime-packages.ts'
import { eventually } from '../harness/timing/eventually.ts'

type Manifest = {
  version: string
  bin: { annals: string }
  dependencies: Record<string, string>
  optionalDependencies: Record<string, string>
}
type Locked = { version: string; integrity: string; optional?: boolean } & Partial<
  Omit<Manifest, 'version'>
>

const temporary = await mkdtempDisposable(join(tmpdir(), 'annals-package-'))
after(() => temporary[Symbol.asyncDispose]())
const folder = join(temporary.path, 'project')
const installed = join(folder, 'node_modules/annals')
const manifest = installPackage()

/** Builds the package, and installs it as npm would, with the packages of this checkout. */
function installPackage(): Manifest {
  const build = join(ROOT, 'server/tools/package/build-package.ts')
  const args = ['--disable-warning=ExperimentalWarning', build, temporary.path]
  const tarball = execFileSync(process.execPath, args, { encoding: 'utf8' }).trim()
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  mkdirSync(installed)
  execFileSync('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1'])
  const read = readManifest(join(installed, 'package.json'))
  symlinkSync(`../annals/${read.bin.annals}`, join(folder, 'node_modules/.bin/annals'))
  symlinkSync(process.execPath, join(folder, 'node_modules/.bin/node'))
  for (const name of Object.keys({ ...read.dependencies, ...read.optionalDependencies })) {
    const source = ['server', '.']
      .map((workspace) => join(ROOT, workspace, 'node_modules', name))
      .find((path) => existsSync(path))
    // npm doesn't install the packages for other platforms.
    if (source === undefined) continue
    const target = join(folder, 'node_modules', name)
    mkdirSync(dirname(target), { recursive: true })
    symlinkSync(source, target)
  }
  return read
}

function readManifest(path: string): Manifest {
  return JSON.parse(readFileSync(path, 'utf8'))
}

test('the package contains the program, its pages and the verifier, and no sources or tests', () => {
  const names = globSync('**/*.*', { cwd: installed })
  const expected =
    /^((server|sdk)\/src\/.+\.js|server\/dist\/[\w-]+\.mjs|server\/migrations\/\d+_\w+\.sql|dashboard\/dist\/.+|openapi\/v1\.json|verifier\/annals-verify\.mjs|README\.md|(package|npm-shrinkwrap|sbom\.cdx)\.json)$/
  assert.deepEqual(
    names.filter((name) => !expected.test(name)),
    [],
  )
  assert.deepEqual(
    names.filter((name) => name.includes('.test.')),
    [],
  )
  for (const name of [
    'LICENSE',
    'NOTICE',
    'sbom.cdx.json',
    'dashboard/dist/explorer.html',
    'server/dist/preload.mjs',
  ]) {
    assert(existsSync(join(installed, name)), name)
  }
})

test('every import of the package leads to one of its files', () => {
  const missing = globSync('{server,sdk}/src/**/*.js', { cwd: installed }).flatMap((name) => {
    const text = readFileSync(join(installed, name), 'utf8')
    const imports = text.matchAll(/(?:\bfrom |\bimport |\bimport\(|\bnew URL\()'(\.[^']*[^/'])'/g)
    return [...imports]
      .map(([, target = '']) => join(dirname(name), target))
      .filter((target) => !existsSync(join(installed, target)))
  })
  assert.deepEqual(missing, [])
  assert(existsSync(join(installed, 'server/src/outlet/archive/read-back-thread.js')))
  const archiver = readFileSync(join(installed, 'server/src/outlet/archive/read-back.js'), 'utf8')
  assert.match(archiver, /new URL\('read-back-thread\.js'/)
})

test('the dependencies are exact, and all packages are locked with their hashes', () => {
  const { dependencies, optionalDependencies } = manifest
  const ranges = Object.values({ ...dependencies, ...optionalDependencies })
  assert.deepEqual(
    ranges.filter((range) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(range)),
    [],
  )
  const [project, server] = ['package.json', 'server/package.json'].map((name) =>
    readManifest(join(ROOT, name)),
  )
  assert.deepEqual(dependencies, server?.dependencies)
  assert.deepEqual(optionalDependencies, {
    ...server?.optionalDependencies,
    ...project?.optionalDependencies,
  })
  const lock: { packages: Record<string, Locked> } = JSON.parse(
    readFileSync(join(installed, 'npm-shrinkwrap.json'), 'utf8'),
  )
  for (const [path, { integrity, ...locked }] of Object.entries(lock.packages)) {
    if (path !== '') assert.match(integrity, /^sha512-/, path)
    for (const name of Object.keys(locked.dependencies ?? {})) {
      const folders = [path, ...path.split('/node_modules/').slice(0, -1), '']
      const found = folders.some(
        (parent) => `${parent}/node_modules/${name}`.replace(/^\//, '') in lock.packages,
      )
      assert(found, `${path} needs ${name}`)
    }
  }
  for (const [name, version] of Object.entries(dependencies)) {
    assert.equal(lock.packages[`node_modules/${name}`]?.version, version, name)
  }
})

test('annals --version of the package prints its version', () => {
  const text = execFileSync(join(folder, 'node_modules/.bin/annals'), ['--version'])
  assert.equal(String(text), `annals ${manifest.version}\n`)
})

test('annals openapi of the package prints the committed document', () => {
  const text = execFileSync(join(folder, 'node_modules/.bin/annals'), ['openapi'])
  assert(text.equals(readFileSync(join(ROOT, 'openapi/v1.json'))))
})

test('annals serve starts in an empty folder, stores an event and stops cleanly', async () => {
  // The service must run on the Node that npm installs with it.
  const otherNode = join(temporary.path, 'other-node')
  mkdirSync(otherNode)
  writeFileSync(join(otherNode, 'node'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  const PATH = `${otherNode}:${process.env.PATH}`
  const child = spawn(join(folder, 'node_modules/.bin/annals'), ['serve'], {
    cwd: folder,
    env: { PATH, ANNALS_PORT: '0', ANNALS_DATA_DIR: join(temporary.path, 'data') },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  try {
    let printed = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
    const [, url, key] = await eventually(() => {
      const found = /running at (\S+)[^]*Workspace key\s+(\S+)/.exec(printed)
      assert(found, printed)
      return found
    })
    const stored = await fetch(`${url}/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: '{"category":"auth","action":"user.login"}',
    })
    assert.equal(stored.status, 201, await stored.text())
    // The commands that are clients of the API load the SDK.
    const env = { PATH, ANNALS_API_URL: url, ANNALS_API_KEY: key }
    const list = ['events', 'list', '--json']
    const annals = promisify(execFile)(join(folder, 'node_modules/.bin/annals'), list, { env })
    assert.equal(JSON.parse((await annals).stdout).action, 'user.login')
    const page = await fetch(`${url}/`)
    assert.match(await page.text(), /<script type="module"/)
    assert.equal((await fetch(`${url}/annals-verify.mjs`)).status, 200)
    assert.doesNotMatch(printed, /WARNING/)
  } finally {
    child.kill('SIGTERM')
  }
  assert.deepEqual(await exited, [0, null])
})
