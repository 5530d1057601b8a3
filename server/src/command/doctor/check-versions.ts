import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseJson } from '../../platform/json/parse-json.ts'
import { connectionLimit, readOpenFilesMax } from '../../platform/open-files.ts'
import { type Finding, finding } from './check.ts'

/** In the npm package, the same relative path leads to its own manifest. */
const MANIFEST = join(import.meta.dirname, '../../../../package.json')

export async function checkVersions(): Promise<Finding> {
  const { version }: { version: string } = parseJson(await readFile(MANIFEST, 'utf8'))
  const { platform, arch } = process
  return finding.ok(`Annals ${version} on Node ${process.versions.node}, ${platform} ${arch}.`)
}

/** A service that is started the same way as this command has the same limit. */
export async function checkOpenFiles(): Promise<Finding> {
  const openFilesMax = readOpenFilesMax()
  const { connectionsMax, isReserveMet } = connectionLimit(openFilesMax)
  const message = `A process can open ${openFilesMax} files, enough for ${connectionsMax} HTTP connections.`
  if (isReserveMet) return finding.ok(message)
  return finding.warning(
    message,
    'Raise the limit on open files to at least 4096, with LimitNOFILE= in systemd or --ulimit nofile= in Docker.',
  )
}
