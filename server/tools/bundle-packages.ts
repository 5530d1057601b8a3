import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Rolldown from 'rolldown'
import { BUNDLES, PRELOAD } from '../src/platform/load-bundles.ts'
import { messageOf } from '../src/platform/pg/pg-error.ts'

const SERVER = join(import.meta.dirname, '..')
/** They consist of a thousand modules, and loading them takes half of what a command takes to start. */
const PACKAGES = ['kysely', 'typebox', 'typebox/compile', 'typebox/format', 'typebox/system']
const COMMONJS_PACKAGES = ['fastify', 'undici']
const NAME = /^(?!default$)[A-Za-z]\w*$/

/**
 * Bundles the packages with the most modules into a few files. Returns the module that a process imports first,
 * to load these in place of the packages.
 */
export async function bundlePackages(folder: string): Promise<string> {
  rmSync(folder, { recursive: true, force: true })
  // Vite's bundler. The project has no other one.
  const vite = createRequire(join(SERVER, '../dashboard/package.json')).resolve('vite')
  const path = createRequire(vite).resolve('rolldown')
  const { build }: typeof Rolldown = await import(pathToFileURL(path).href)
  const files = [...PACKAGES, ...COMMONJS_PACKAGES].map(
    (name) => [name, name.replace('/', '-')] as const,
  )
  const entries = join(folder, 'entries')
  mkdirSync(entries, { recursive: true })
  const input: Record<string, string> = {}
  for (const [name, file] of files) {
    input[file] = COMMONJS_PACKAGES.includes(name) ? await writeEntry(name, entries) : name
  }
  await build({
    cwd: SERVER,
    input,
    platform: 'node',
    output: { dir: folder, entryFileNames: '[name].mjs', chunkFileNames: '[name].mjs' },
    logLevel: 'warn',
  })
  rmSync(entries, { recursive: true })
  const preload = join(folder, PRELOAD)
  writeFileSync(preload, preloadText(files))
  return preload
}

/** A module with the names that Node finds in the exports of a CommonJS package. The bundler finds none. */
async function writeEntry(name: string, folder: string): Promise<string> {
  const path = createRequire(join(SERVER, 'package.json')).resolve(name)
  const found: Record<string, unknown> = await import(pathToFileURL(path).href)
  const names = Object.keys(found).filter((key) => NAME.test(key))
  const lines = [
    `import value from ${JSON.stringify(path)}`,
    'export default value',
    `export const { ${names.join(', ')} } = value`,
  ]
  const entry = join(folder, `${name}.mjs`)
  writeFileSync(entry, `${lines.join('\n')}\n`)
  return entry
}

/** npm runs with the system's Node, which may be too old for this and needs none of the packages. */
function preloadText(files: readonly (readonly [name: string, file: string])[]): string {
  const paths = files.map(([name, file]) => [name, `./${file}.mjs`])
  return `
import * as module from 'node:module'
const paths = new Map(${JSON.stringify(paths)})
module.registerHooks?.({
  resolve: (name, context, next) => {
    const path = paths.get(name)
    if (path) return { url: new URL(path, import.meta.url).href, shortCircuit: true }
    if (!name.startsWith('.') || !name.endsWith('.ts')) return next(name, context)
    // Looking for links and package.json files takes a sixth of what a process takes to start.
    const file = new URL(name, context.parentURL).href
    return { url: file, format: 'module-typescript', shortCircuit: true }
  },
})
`
}

// npm install runs this.
if (import.meta.main) {
  await bundlePackages(BUNDLES).catch((error: unknown) => {
    process.stderr.write(
      `Packages were not bundled, so commands start more slowly: ${messageOf(error)}\n`,
    )
  })
}
