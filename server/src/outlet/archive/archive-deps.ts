import type { Clock } from '../../platform/time/clock.ts'
import type { Logger } from '../../platform/logger.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import type { ReadBack } from './read-back.ts'

/** Dependencies of every archiving step. */
export type ArchiveDeps = {
  /** Uses the keeper role, which may delete archived events. */
  database: Database
  archive: ObjectStore
  readBack: ReadBack
  clock: Clock
  logger: Logger
}

/** Per run: one connection reads ahead, one updates the catalog and deletes rows, one holds the lock. */
export const ARCHIVE_CONNECTIONS_MAX = 3

/** The table doesn't match its chain, so its events must not be archived. */
export class ArchiveRefusedError extends Error {
  override name = 'ArchiveRefusedError'
}

/**
 * This node's storage lacks files that the archive of this database has, such as the newest segment. The
 * evidence must not be split between two storages.
 */
export class ArchiveUnreachableError extends Error {
  override name: string = 'ArchiveOutOfReachError'
}

/** This node's storage is not the archive of this database, so the whole run ends. */
export class OtherArchiveError extends ArchiveUnreachableError {
  override name = 'OtherArchiveError'
}

/** The clocks differ too much to tell which events are due. */
export class ArchiveClockError extends Error {
  override name = 'ArchiveClockError'
}

/** Whether an error ends the whole run with a message for the operator. */
export function isRefusal(error: unknown): error is ArchiveUnreachableError | ArchiveClockError {
  return error instanceof ArchiveUnreachableError || error instanceof ArchiveClockError
}
