import { useMemo } from 'react'
import { parseJson } from '../../../../../sdk/src/client/parse-json.ts'
import { canFilter } from '../../../query/metadata.ts'
import type { ExplorerEvent } from '../explorer-event.ts'

/** Enough to find the keys that most events have. */
const EVENTS_MAX = 200
const PATHS_MAX = 12
const DEPTH_MAX = 4

/** The paths of the metadata that have values, of the first events of the list, most frequent first. */
export function useMetadataPaths(events: readonly ExplorerEvent[]): readonly string[] {
  const key = useMemo(
    () => JSON.stringify(listMetadataPaths(events.slice(0, EVENTS_MAX))),
    [events],
  )
  // Returns the same array while the paths are the same.
  return useMemo(() => parseJson(key) as readonly string[], [key]) // Written by this function.
}

function listMetadataPaths(events: readonly Pick<ExplorerEvent, 'metadata'>[]): string[] {
  const counts = new Map<string, number>()
  const count = (value: unknown, keys: readonly string[]): void => {
    if (typeof value !== 'object' || value === null) {
      const path = keys.join('.')
      if (canFilter(path, '')) counts.set(path, (counts.get(path) ?? 0) + 1)
    } else if (!Array.isArray(value) && keys.length < DEPTH_MAX) {
      for (const [name, inner] of Object.entries(value)) count(inner, [...keys, name])
    }
  }
  for (const { metadata } of events) if (metadata !== null) count(metadata, [])
  return [...counts]
    .toSorted(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
    .slice(0, PATHS_MAX)
    .map(([path]) => path)
}
