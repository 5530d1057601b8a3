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

/** The table doesn't match its chain, so its events must not be archived. */
export class ArchiveRefusedError extends Error {
  override name = 'ArchiveRefusedError'
}

/**
 * The catalog lists a segment that this node's archive doesn't have. The node uses a different archive
 * than the others, and evidence must not be split between two archives.
 */
export class ArchiveOutOfReachError extends Error {
  override name = 'ArchiveOutOfReachError'
}
