import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Config } from './config.ts'

/**
 * The URL of this node's archive, or null if it must not archive. A local folder is not a safe default
 * for a shared database: other nodes couldn't read it, and it disappears with the pod.
 */
export function archiveUrlOf({ archiveUrl, databaseUrl, dataDir }: Config): string | null {
  if (archiveUrl !== null) return archiveUrl
  return databaseUrl === null ? pathToFileURL(join(dataDir, 'archive')).href : null
}
