import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { acquireFileLock } from '../platform/file-lock.ts'
import type { Logger } from '../platform/logger.ts'

const DASHBOARD = join(import.meta.dirname, '../../../dashboard')
/** Longer than a build takes. */
const OTHER_BUILD_MS_MAX = 120_000
/** Keeps the end of a failed build's output, which names the cause. */
const OUTPUT_LENGTH_MAX = 4_000
/** The pages share no other file. */
const SHARED_SOURCE = '../sdk/src/client/parse-json.ts'

export type Pages = {
  /** Null if there are no pages. */
  folder: string | null
  /** A warning for the operator if the pages are outdated or missing, with what to do about it. */
  warning: string | null
}

/**
 * Builds the dashboard's pages with Vite if they are missing or older than their sources. A release ships
 * them built, without Vite. If the build fails, the service serves outdated pages, but always warns. A process
 * that starts during a build waits for it, because a build replaces the files that it would read.
 */
export async function ensurePages(
  logger: Logger,
  dashboard: string = DASHBOARD,
  signal?: AbortSignal,
): Promise<Pages> {
  const dist = join(dashboard, 'dist')
  const stampFile = join(dist, '.sources')
  const stamp = stampOfSources(dashboard)
  const isBuilt = () => existsSync(join(dist, 'explorer.html'))
  const isFresh = () =>
    isBuilt() &&
    (stamp === null || (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp))
  if (isFresh()) return { folder: dist, warning: null }
  const vite = findVite(dashboard)
  using _lock = vite === null ? null : await lockBuild(dashboard, signal)
  if (isFresh()) return { folder: dist, warning: null }
  const folder = isBuilt() ? dist : null
  if (stamp === null || vite === null) {
    const problem = describeProblem(
      folder,
      'Vite is not installed. Run npm install, then start again.',
    )
    logger.error({ event: 'pages.outdated', isOldServed: folder !== null, trouble: problem })
    return { folder, warning: problem }
  }
  const startedAt = performance.now()
  const output = await runVite(vite, dashboard, signal)
  if (output !== null) {
    const problem = describeProblem(
      folder,
      'Building them failed. To see why, run npm run build -w dashboard.',
    )
    logger.error({ event: 'pages.failed', isOldServed: folder !== null, trouble: problem, output })
    return { folder, warning: problem }
  }
  writeFileSync(stampFile, stamp)
  logger.info({ event: 'pages.built', durationMs: Math.round(performance.now() - startedAt) })
  return { folder: dist, warning: null }
}

/** Null if the folder isn't writable or another build takes too long. */
async function lockBuild(
  dashboard: string,
  signal: AbortSignal | undefined,
): Promise<Disposable | null> {
  const path = join(dashboard, 'dist.lock')
  return await acquireFileLock(path, { waitMsMax: OTHER_BUILD_MS_MAX, signal }).catch(() => null)
}

function describeProblem(folder: string | null, reason: string): string {
  const what = folder === null ? 'are missing' : 'are older than their sources'
  return `The dashboard's pages ${what}. ${reason}`
}

/** A digest of all source files, or null if there are none, as in a release. */
function stampOfSources(dashboard: string): string | null {
  const paths = globSync(
    ['index.html', 'vite.config.ts', 'package.json', 'src/**/*.*', 'public/**/*.*', SHARED_SOURCE],
    { cwd: dashboard },
  ).toSorted()
  if (!paths.some((path) => path.startsWith('src'))) return null
  const digest = createHash('sha256')
  for (const path of paths) {
    digest.update(`${relative('.', path)}\0`).update(readFileSync(join(dashboard, path)))
  }
  return digest.digest('hex')
}

function findVite(dashboard: string): string | null {
  try {
    const manifest = createRequire(join(dashboard, 'package.json')).resolve('vite/package.json')
    return join(dirname(manifest), 'bin/vite.js')
  } catch {
    return null
  }
}

/** Returns null on success, otherwise the end of Vite's output. */
async function runVite(
  vite: string,
  dashboard: string,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  const child = spawn(process.execPath, [vite, 'build', '--logLevel', 'warn'], {
    cwd: dashboard,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_LENGTH_MAX)
    })
  }
  const [code] = await once(child, 'close')
  return code === 0 ? null : output
}
