import { useSyncExternalStore } from 'react'
import { queryClient } from '../api/query-client.ts'
import { driftedQueries } from '../api/schema-drift.ts'

/** The tables that the database lacks and that queries of the page need. Empty if there are none. */
export function useMissingTables(): string {
  return useSyncExternalStore(subscribe, missingTables)
}

function subscribe(listener: () => void): () => void {
  return queryClient.getQueryCache().subscribe(listener)
}

function missingTables(): string {
  const tables = new Set(driftedQueries(queryClient).map(({ table }) => table))
  return [...tables].toSorted().join(', ')
}
