import { execFileSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/**
 * Compiles the package into `dist` of a folder, by default of the workspace: JavaScript without comments, and
 * declarations with them. `.ts` files under `node_modules` don't run. The offline verifier and the license are
 * copied as they are, so that there is one source of each.
 */
const SDK = join(import.meta.dirname, '..')
const folder = resolve(process.argv[2] ?? SDK)
const dist = join(folder, 'dist')

rmSync(dist, { recursive: true, force: true })
compile('--removeComments')
compile('--declaration', '--emitDeclarationOnly')
for (const name of globSync('**/*.d.ts', { cwd: dist })) {
  const path = join(dist, name)
  // The compiler rewrites these only in JavaScript.
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/(['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2'))
}
mkdirSync(join(folder, 'verifier'), { recursive: true })
for (const path of ['verifier/annals-verify.mjs', 'LICENSE']) {
  copyFileSync(join(SDK, '..', path), join(folder, path))
}

function compile(...options: string[]): void {
  const tsc = join(SDK, '../node_modules/typescript/bin/tsc')
  const project = join(SDK, 'tsconfig.build.json')
  const args = [tsc, '--project', project, '--outDir', dist, ...options]
  execFileSync(process.execPath, args, { stdio: 'inherit' })
}
