import type { Logger } from '../../platform/logger.ts'
import { isOutage, type Queryable } from '../../platform/pg/database.ts'
import { findNewestSegment } from './archive-store.ts'

/**
 * Logs once, at startup, that a node without an archive keeps all events in the database. If other nodes
 * have archived events, also logs the newest segment, because this node can't read it.
 */
export async function warnNoArchive({
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
    const missing = `This node can't read archived segments, such as the newest one, ${segment.objectKey}. Set ANNALS_ARCHIVE_URL to the archive that has them.`
    logger.error({ event: 'archive.unreachable', reason: missing, ...segment })
  } catch (error) {
    // Readiness reports a database outage; it doesn't stop the startup.
    if (!isOutage(error)) throw error
  }
}
