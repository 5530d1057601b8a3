import type { WorkspaceId } from '../../platform/id.ts'
import type { CopySource } from '../../platform/pg/copy-out.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** Where the rows of a chain are read: connections to the primary, or one snapshot of a replica. */
export type ChainSource = { pool: CopySource; db: Queryable }

/**
 * Chooses the server for each read of a chain. A read sees every event of the workspace that was acknowledged
 * before it started, and may run twice.
 */
export type ChainReads = {
  read: <T>(workspaceId: WorkspaceId, read: (source: ChainSource) => Promise<T>) => Promise<T>
}

/** Reads everything from one source. */
export function readsFrom(source: ChainSource): ChainReads {
  return { read: async (_, read) => await read(source) }
}
