import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, symlinkSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../../..')
/** What the examples import besides the SDK. */
const FRAMEWORKS = ['express', 'fastify', 'hono', '@hono/node-server']

export type InstalledSdk = AsyncDisposable & {
  /** The file that would be published. */
  tarball: string
  /** A folder with the examples, and the SDK as npm would install it. */
  folder: string
  /** The SDK in `node_modules` of that folder. */
  sdk: string
}

/** Builds and packs the SDK, and installs it beside the examples. */
export async function installSdk(): Promise<InstalledSdk> {
  const temporary = await mkdtempDisposable(join(tmpdir(), 'annals-sdk-'))
  const staging = join(temporary.path, 'staging')
  const sdk = join(temporary.path, 'node_modules/@annals/sdk')
  for (const folder of [staging, sdk, join(temporary.path, 'node_modules/@hono')]) {
    mkdirSync(folder, { recursive: true })
  }
  for (const name of ['package.json', 'README.md']) {
    cpSync(join(ROOT, 'sdk', name), join(staging, name))
  }
  execFileSync(process.execPath, [join(ROOT, 'sdk/tools/build.ts'), staging], { stdio: 'inherit' })
  const env = { ...process.env, NODE_OPTIONS: '', npm_config_update_notifier: 'false' }
  execFileSync('npm', ['pack', '--ignore-scripts', '--offline'], {
    cwd: staging,
    env,
    stdio: 'pipe',
  })
  const [name = ''] = globSync('*.tgz', { cwd: staging })
  const tarball = join(staging, name)
  execFileSync('tar', ['-xzf', tarball, '-C', sdk, '--strip-components=1'])
  for (const name of FRAMEWORKS) {
    symlinkSync(join(ROOT, 'node_modules', name), join(temporary.path, 'node_modules', name))
  }
  cpSync(join(ROOT, 'examples'), join(temporary.path, 'examples'), { recursive: true })
  return {
    tarball,
    folder: temporary.path,
    sdk,
    [Symbol.asyncDispose]: () => temporary[Symbol.asyncDispose](),
  }
}
