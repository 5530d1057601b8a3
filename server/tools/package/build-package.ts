import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ensurePages } from '../../src/command/build-pages.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { bundlePackages } from '../bundle-packages.ts'
import { compileModule } from './compile.ts'
import { packageManifest, shrinkwrap } from './print-manifest.ts'
import { sbomText } from './print-sbom.ts'
import { ROOT } from './runtime-packages.ts'

/**
 * `npm run package`: writes the npm package `annals-<version>.tgz` into `dist`, or into another folder, and
 * prints its path. Relative to each other, its files are where they are in the project.
 */
const COPIED = [
  'LICENSE',
  'NOTICE',
  'bin/annals-verify',
  'bin/node',
  'openapi/v1.json',
  'server/migrations',
  'verifier/annals-verify.mjs',
]
/** The commands that are clients of the API load the SDK's sources. */
const MODULES = ['server/src/**/*.ts', 'sdk/src/**/*.ts']
/** No command imports them, or they have only types. */
const NOT_LOADED = [
  '**/*.test.ts',
  'sdk/src/middleware/**',
  'sdk/src/node/{index,verify-export}.ts',
  'sdk/src/schema.ts',
]

const { folder: pages, warning } = await ensurePages(createLogger('warn', 'stderr'))
if (pages === null || warning !== null) throw new Error(warning ?? 'There are no pages.')
const folder = resolve(process.argv[2] ?? join(ROOT, 'dist'))
const staging = join(folder, 'package')
rmSync(staging, { recursive: true, force: true })
for (const name of COPIED) cpSync(join(ROOT, name), join(staging, name), { recursive: true })
cpSync(pages, join(staging, 'dashboard/dist'), {
  recursive: true,
  // Without sources, the service doesn't compare the pages with them.
  filter: (path) => !path.endsWith('.sources'),
})
for (const name of globSync(MODULES, { cwd: ROOT, exclude: NOT_LOADED })) {
  write(name.replace(/\.ts$/, '.js'), compileModule(readFileSync(join(ROOT, name), 'utf8')))
}
await bundlePackages(join(staging, 'server/dist'))
const program = readFileSync(join(ROOT, 'bin/annals'), 'utf8')
write('bin/annals', program.replace('src/main.ts', 'src/main.js'), 0o755)
write('README.md', readFileSync(join(ROOT, 'deploy/npm/README.md'), 'utf8'))
write('package.json', toJson(packageManifest()))
write('npm-shrinkwrap.json', toJson(shrinkwrap()))
write('sbom.cdx.json', sbomText())
// Without the options of an npm that runs this, such as a workspace. npm's own Node must run it.
const env = { PATH: process.env.PATH, HOME: process.env.HOME, npm_config_update_notifier: 'false' }
const args = ['pack', '--ignore-scripts', '--offline', '--silent', '--pack-destination', folder]
const name = execFileSync('npm', args, { cwd: staging, env, encoding: 'utf8' }).trim()
process.stdout.write(`${join(folder, name)}\n`)

function write(name: string, text: string, mode = 0o644): void {
  const path = join(staging, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text, { mode })
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
