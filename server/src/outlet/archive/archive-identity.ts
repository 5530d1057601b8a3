import { randomHex } from '../../platform/id.ts'
import { archiveMarkerKey, StorageError } from '../../platform/object-store/object-store.ts'
import { type ArchiveDeps, OtherArchiveError } from './archive-deps.ts'
import { insertArchiveIdIfAbsent, readArchiveId } from './archive-identity-store.ts'
import { hasObject } from './check-reach.ts'
import { deleteIfAllowed } from './clear-drafts.ts'

type IdentityDeps = Pick<ArchiveDeps, 'database' | 'archive' | 'clock' | 'logger'>

const MARKER_TEXT = 'This file identifies the archive. Archiving stops without it.\n'

/**
 * Throws if the storage is not the archive of this database, that is, if it lacks the marker file named by
 * the id in the database. Before the first segment there is no id, and every storage passes.
 */
export async function refuseOtherArchive({ database, archive }: IdentityDeps): Promise<void> {
  const archiveId = await readArchiveId(database.db)
  if (archiveId === null) return
  const key = archiveMarkerKey(archiveId)
  if (await hasObject(archive, key, `the marker file ${key}`)) return
  throw new OtherArchiveError(
    `This node's archive doesn't have the marker file ${key}, which identifies the archive of this database. Set ANNALS_ARCHIVE_URL to the archive that the other nodes use. If this is that archive and the marker was lost, create a file with this name in it. Nothing was archived.`,
  )
}

/**
 * Like `refuseOtherArchive`, but makes this storage the archive if the database has none yet. If archivers
 * start at the same time, the database picks one. The marker is written first, so the chosen storage always
 * has it. Its name contains the id, so archivers that share a storage never overwrite each other's marker.
 */
export async function claimArchive(deps: IdentityDeps): Promise<void> {
  const { database, archive, clock, logger } = deps
  if ((await readArchiveId(database.db)) === null) {
    const archiveId = randomHex(16)
    const key = archiveMarkerKey(archiveId)
    await archive.put(key, Buffer.from(MARKER_TEXT))
    // Without the marker, the id in the database would stop archiving for good.
    if (!(await hasObject(archive, key, `the marker file ${key}`))) {
      throw new StorageError(
        `The marker file ${key} was written to the archive, but it can't be found there.`,
      )
    }
    const isOurs = await insertArchiveIdIfAbsent(database.db, archiveId, new Date(clock()))
    if (isOurs) logger.info({ event: 'archive.identified', archiveId })
    else await deleteIfAllowed(deps, key)
  }
  await refuseOtherArchive(deps)
}
