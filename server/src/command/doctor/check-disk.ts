import { access } from 'node:fs/promises'
import { dirname } from 'node:path'
import { archiveUrlOf } from '../../archive-url-of.ts'
import type { Config } from '../../config.ts'
import { readDiskSpace } from '../../platform/engine/disk-space.ts'
import { parseArchiveUrl } from '../../platform/object-store/archive-url.ts'
import { type Finding, finding, type Machine } from './check.ts'

/** Below this multiple of the reserve, the operator should act. */
const WARNING_FACTOR = 2

export async function checkDisk({ config }: Machine): Promise<Finding> {
  const folders = await Promise.all(foldersOf(config).map(existingPart))
  if (folders.length === 0) return finding.ok('Annals stores nothing on this machine.')
  const texts: string[] = []
  let isNear = false
  for (const folder of folders) {
    const { freeBytes, reserveBytes } = await readDiskSpace(folder)
    const text = `${gigabytes(freeBytes)} are free on the disk of ${folder}`
    if (freeBytes < reserveBytes) {
      return finding.failed(
        `Only ${text}. Below ${gigabytes(reserveBytes)}, the service refuses events.`,
        'Free some space on this disk, or make it larger.',
      )
    }
    isNear ||= freeBytes < reserveBytes * WARNING_FACTOR
    texts.push(text)
  }
  const message = `${texts.join(', and ')}.`
  if (!isNear) return finding.ok(message)
  return finding.warning(
    `Only ${message} The service refuses events if the disk gets fuller.`,
    'Free some space on this disk, or make it larger.',
  )
}

/** Folders of this machine that grow. */
function foldersOf(config: Config): string[] {
  const folders = config.databaseUrl === null ? [config.dataDir] : []
  const url = config.archiveUrl === null ? null : archiveUrlOf(config)
  const location = url === null ? null : parseArchiveUrl(url)
  if (location?.kind === 'folder') folders.push(location.path)
  return folders
}

/** A folder that doesn't exist yet will be on the disk of the folder above it. */
async function existingPart(folder: string): Promise<string> {
  const parent = dirname(folder)
  if (parent === folder) return folder
  try {
    // Unlike `existsSync`, this doesn't block the process if the disk hangs.
    await access(folder)
    return folder
  } catch {
    return await existingPart(parent)
  }
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toLocaleString('en-US', { maximumFractionDigits: 2 })} GB`
}
