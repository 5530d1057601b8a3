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

/** The table differs from the chain that it holds, so its events must not be archived. */
export class ArchiveRefusedError extends Error {
  override name = 'ArchiveRefusedError'
}

/**
 * The catalogue names a segment that this node's archive does not have: it is another archive than
 * the one the other nodes use, and evidence must not be divided between two.
 */
export class ArchiveOutOfReachError extends Error {
  override name = 'ArchiveOutOfReachError'
}
