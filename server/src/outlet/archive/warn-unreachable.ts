import { isOutage } from '../../platform/pg/database.ts'
import { stoppable } from '../../platform/object-store/object-store.ts'
import { type ArchiveDeps, ArchiveUnreachableError } from './archive-deps.ts'
import { refuseOtherArchive } from './archive-identity.ts'

/**
 * Logs at startup that the storage can't be reached or isn't the archive of this database, such as a disk
 * that isn't mounted. It runs in the background and never stops the startup: events are accepted without
 * the archive.
 */
export function warnUnreachable({
  logger,
  ...deps
}: Pick<ArchiveDeps, 'database' | 'archive' | 'clock' | 'logger'>): AsyncDisposable {
  const stop = new AbortController()
  const archive = stoppable(deps.archive, stop.signal, { graceMs: 0 })
  const note = async (): Promise<void> => {
    try {
      await refuseOtherArchive({ ...deps, archive, logger })
    } catch (error) {
      if (stop.signal.aborted || isOutage(error)) return
      const reason = error instanceof ArchiveUnreachableError ? error.message : undefined
      logger.error({ event: 'archive.unreachable', reason, err: error })
    }
  }
  const noting = note()
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort()
      await noting
    },
  }
}
