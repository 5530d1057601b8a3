import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { EngineError, errorCode } from './engine-error.ts'
import { dataFolderHash, type EngineFiles } from './files.ts'
import { ENGINE_PORT } from './settings.ts'

/** A socket address has 104 bytes on macOS and 108 on Linux, including a final NUL. */
const SOCKET_PATH_BYTES_MAX = 100

/**
 * The folder through which this process reaches PostgreSQL's socket. If the data folder's path is too long
 * for a socket address, this is a link in a private temporary folder. PostgreSQL itself always listens in
 * the data folder, so processes can have different values of TMPDIR.
 */
export function openSocketFolder(files: EngineFiles): string {
  if (socketPathFits(files.run)) return files.run
  const folder = linkFolder(files)
  const link = join(folder, 'run')
  if (!socketPathFits(link)) {
    throw new EngineError(
      `The paths ${files.dataDir} and ${tmpdir()} (the temporary folder) are both too long for a ` +
        'socket. Set ANNALS_DATA_DIR or TMPDIR to a shorter path.',
    )
  }
  unlessThere(() => fs.mkdirSync(folder, { mode: 0o700 }))
  if (isPrivate(folder)) unlessThere(() => fs.symlinkSync(files.run, link))
  if (isPrivate(folder) && fs.readlinkSync(link) === files.run) return link
  throw new EngineError(
    `${folder} is not this user's private folder with a link to the database. ` +
      'Remove it, or set ANNALS_DATA_DIR to a shorter path.',
  )
}

/** Called by the last process to leave. A link that can't be removed does no harm. */
export function removeSocketLink(files: EngineFiles): void {
  if (socketPathFits(files.run)) return
  const folder = linkFolder(files)
  if (fs.existsSync(folder) && isPrivate(folder)) fs.rmSync(folder, { recursive: true })
}

/** One per user, because root may use another user's data folder. */
function linkFolder(files: EngineFiles): string {
  return join(tmpdir(), `annals-${process.getuid?.()}-${dataFolderHash(files)}`)
}

/** Anyone can write to the temporary folder, so another user could have taken the name first. */
function isPrivate(folder: string): boolean {
  const found = fs.lstatSync(folder)
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0
}

function unlessThere(make: () => void): void {
  try {
    make()
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

function socketPathFits(folder: string): boolean {
  return Buffer.byteLength(join(folder, `.s.PGSQL.${ENGINE_PORT}`)) <= SOCKET_PATH_BYTES_MAX
}
