import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { archiveUrlOf } from '../../archive-url-of.ts'
import { refuseOtherArchive } from '../../outlet/archive/archive-identity.ts'
import { hasObject, refuseUnreachable } from '../../outlet/archive/check-reach.ts'
import { readArchiveId } from '../../outlet/archive/archive-identity-store.ts'
import { createLogger } from '../../platform/logger.ts'
import { errorCode } from '../../platform/engine/engine-error.ts'
import { parseArchiveUrl } from '../../platform/object-store/archive-url.ts'
import { systemClock as clock } from '../../platform/time/clock.ts'
import { type Finding, finding, type OpenLedger } from './check.ts'
import { findOldestSegment } from './doctor-store.ts'

const ADVICE = 'See "Storage problems" in docs/operations.md.'

/** The same checks as before archiving, and that the oldest segment is still there. */
export async function checkArchive({ config, database, archive }: OpenLedger): Promise<Finding> {
  const url = archiveUrlOf(config)
  const oldest = await findOldestSegment(database.db)
  if (url === null) {
    const message = 'No archive is configured: events stay in the database, and nothing is signed.'
    const advice = 'Set ANNALS_ARCHIVE_URL to a folder or an S3 bucket that all nodes can reach.'
    if (oldest === null) return finding.warning(message, advice)
    return finding.failed(`${message} Archived segments, such as ${oldest}, can't be read.`, advice)
  }
  const deps = { database, archive, clock, logger: createLogger('silent') }
  await refuseOtherArchive(deps)
  await refuseUnreachable(deps)
  if (oldest !== null && !(await hasObject(archive, oldest, `the archived segment ${oldest}`))) {
    return finding.failed(`The archive doesn't have the oldest segment, ${oldest}.`, ADVICE)
  }
  const { kind, path } = { path: '', ...parseArchiveUrl(url) }
  const fault = kind === 'folder' ? await writeFault(path) : null
  if (fault !== null)
    return finding.failed(`Can't write to the archive in ${path}: ${fault}.`, ADVICE)
  if ((await readArchiveId(database.db)) === null) return finding.ok(`${url} has no segments yet.`)
  const note = kind === 'folder' ? ', and it is writable' : ''
  return finding.ok(`${url} has the newest and the oldest segment of the catalog${note}.`)
}

/** Tries nothing, because it must not change the archive. The first write creates a missing folder. */
async function writeFault(path: string): Promise<string | null> {
  try {
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK)
    return null
  } catch (error) {
    const code = errorCode(error) ?? String(error)
    return code === 'ENOENT' ? null : code
  }
}
