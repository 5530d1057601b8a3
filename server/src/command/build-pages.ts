import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Logger } from '../platform/logger.ts'

const DASHBOARD = join(import.meta.dirname, '../../../dashboard')
const DIST = join(DASHBOARD, 'dist')
/** What the built pages were made of. */
const STAMP = join(DIST, '.sources')

/**
 * The folder with the dashboard's pages, or null when there is none. They are built when they are missing
 * or older than their sources, where Vite is installed; a release has them built and no Vite.
 */
export async function ensurePages(logger: Logger): Promise<string | null> {
  const stamp = stampOfSources()
  const isBuilt = existsSync(join(DIST, 'explorer.html'))
  const isFresh = isBuilt && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === stamp
  if (isFresh || stamp === null) return isBuilt ? DIST : null
  const vite = findVite()
  if (vite === null) return isBuilt ? DIST : null
  const startedAt = performance.now()
  const output = await runVite(vite)
  if (output !== null) {
    logger.error({ event: 'pages.failed', output })
    return isBuilt ? DIST : null
  }
  writeFileSync(STAMP, stamp)
  logger.info({ event: 'pages.built', durationMs: Math.round(performance.now() - startedAt) })
  return DIST
}

/** A digest of every source; null where there are none, as in a release. */
function stampOfSources(): string | null {
  const paths = globSync(
    ['index.html', 'vite.config.ts', 'package.json', 'src/**/*.*', 'public/**/*.*'],
    {
      cwd: DASHBOARD,
    },
  ).toSorted()
  if (!paths.some((path) => path.startsWith('src'))) return null
  const digest = createHash('sha256')
  for (const path of paths) {
    digest.update(`${relative('.', path)}\0`).update(readFileSync(join(DASHBOARD, path)))
  }
  return digest.digest('hex')
}

function findVite(): string | null {
  try {
    const manifest = createRequire(join(DASHBOARD, 'package.json')).resolve('vite/package.json')
    return join(dirname(manifest), 'bin/vite.js')
  } catch {
    return null
  }
}

/** Null when it went well, else what it said. */
async function runVite(vite: string): Promise<string | null> {
  const child = spawn(process.execPath, [vite, 'build', '--logLevel', 'warn'], {
    cwd: DASHBOARD,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  }
  const [code] = await once(child, 'close')
  return code === 0 ? null : output
}
