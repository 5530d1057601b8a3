import type { Logger } from '../../platform/logger.ts'
import { isOutage, type Queryable } from '../../platform/pg.ts'
import { findNewestSegment } from './archive-store.ts'

/**
 * Says once, at the start, that a node without an archive keeps all events in the database, and names
 * the newest segment when others have archived some: this node cannot read them.
 */
export async function noteNoArchive({
  db,
  logger,
}: {
  db: Queryable
  logger: Logger
}): Promise<void> {
  const reason =
    'ANNALS_ARCHIVE_URL is not set: nothing is archived, and events stay in the database after their hot time.'
  logger.warn({ event: 'archive.off', reason })
  try {
    const segment = await findNewestSegment(db, null)
    if (segment === null) return
    const missing = `The catalogue names archived segments, the newest ${segment.objectKey}, which this node cannot read. Set ANNALS_ARCHIVE_URL to the archive that holds them.`
    logger.error({ event: 'archive.unreachable', reason: missing, ...segment })
  } catch (error) {
    // Readiness reports an outage of the database; it does not stop the start.
    if (!isOutage(error)) throw error
  }
}
