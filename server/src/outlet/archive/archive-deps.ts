import type { Clock } from '../../platform/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import type { ObjectStore } from '../../platform/object-store.ts'
import type { Database } from '../../platform/pg.ts'
import type { ReadBack } from './read-back.ts'

/** What every step of archiving works with. */
export type ArchiveDeps = {
  /** Under the keeper's role, which may remove what it has archived. */
  database: Database
  store: ObjectStore
  readBack: ReadBack
  clock: Clock
  logger: Logger
}

/**
 * Of one run: the pages that are read ahead, what the catalogue is told and what is removed, and the
 * lock.
 */
export const ARCHIVE_CONNECTIONS_MAX = 3

/** What an archiver found that must not be archived: the table differs from the chain it holds. */
export class ArchiveRefusedError extends Error {
  override name = 'ArchiveRefusedError'
}
