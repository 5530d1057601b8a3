import type { WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import { NO_FILTER } from '../filter/event-filter.ts'
import { eventsOf } from '../hot/hot-page.ts'
import { readEvents } from '../reader.ts'
import { readArchivedSeq } from '../segment/segment-store.ts'
import { listCores, type StoredCore } from './core-store.ts'

const CORES_PER_READ = 1_000
const ARCHIVED_PAGE = { rows: CORES_PER_READ, bytes: 2 * 1_024 * 1_024, mayBeLarge: true }

/** An event is neither in the table nor in the archive, so the chain was changed. */
export class EventMissingError extends Error {
  override name = 'EventMissingError'
}

/**
 * Reads events of a chain in order, without their parts if they are in the table. The caller checks that they
 * follow each other.
 */
export async function* readCores(
  {
    database,
    archive,
    signal,
  }: {
    database: Pick<Database, 'pool' | 'db'>
    archive: ObjectStore
    signal?: AbortSignal | undefined
  },
  run: { workspaceId: WorkspaceId; afterSeq: number; toSeq: number },
): AsyncGenerator<readonly StoredCore[], void, void> {
  const { workspaceId, toSeq } = run
  let seq = run.afterSeq
  while (seq < toSeq) {
    const limit = CORES_PER_READ
    const page = await listCores(database.db, { workspaceId, afterSeq: seq, toSeq, limit })
    if (page[0]?.seq === seq + 1) {
      yield page
      seq = page.at(-1)?.seq ?? toSeq
      continue
    }
    // Rows are deleted only after the catalog lists them.
    const archivedSeq = await readArchivedSeq(database.db, workspaceId)
    if (archivedSeq <= seq) {
      throw new EventMissingError(`event ${seq + 1} of the chain is missing`)
    }
    const cold = { workspaceId, fromSeq: seq + 1, toSeq: Math.min(toSeq, archivedSeq) }
    const reads = { database, archive, ...(signal && { signal }) }
    for await (const events of readEvents(reads, cold, NO_FILTER, () => ARCHIVED_PAGE)) {
      yield eventsOf(events)
    }
    seq = cold.toSeq
  }
}
