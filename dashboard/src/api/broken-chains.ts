import { skipToken, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { client, unwrap } from './client.ts'
import { queryClient } from './query-client.ts'
import type { paths } from './schema.d.ts'

type BrokenRuns =
  paths['/dashboard/integrity/broken']['get']['responses'][200]['content']['application/json']

/** An event that failed verification in this browser. */
type BrokenEvent = { id: string; workspaceId: string; foundAtMs: number }

export const INTEGRITY_KEY = ['integrity'] as const
export const BROKEN_KEY = [...INTEGRITY_KEY, 'broken'] as const
const FOUND_KEY = ['broken-events'] as const
/** Not polled, because that would keep an unattended session open. */
const STALE_MS = 60_000
const FOUND_MAX = 1_000

/** Verification runs that found a chain broken, without a later one that found it intact. */
export function useBrokenRuns() {
  const { data } = useQuery({
    queryKey: BROKEN_KEY,
    queryFn: () => unwrap(client.GET('/dashboard/integrity/broken')),
    staleTime: STALE_MS,
  })
  return data?.runs ?? NONE
}

const NONE: readonly never[] = []

/** The workspaces and events that a run or this browser knows to be broken. */
export function useKnownBroken() {
  const runs = useBrokenRuns()
  const { data: found = NONE } = useQuery<readonly BrokenEvent[]>({
    queryKey: FOUND_KEY,
    queryFn: skipToken,
    gcTime: Number.POSITIVE_INFINITY,
  })
  return useMemo(() => {
    const ofRuns = runs.map(({ workspaceId, badEventId: id }) => ({ id, workspaceId }))
    const all = [...ofRuns, ...found]
    return {
      workspaceIds: new Set(all.map(({ workspaceId }) => workspaceId)),
      eventIds: new Set(all.map(({ id }) => id)),
    }
  }, [runs, found])
}

/** When the last run that found a chain intact started. */
const heldAtMs = new Map<string, number>()

/**
 * Remembers, until the page is reloaded, that this browser found an event broken or intact. `foundAtMs` is when the
 * check began: it can end after the event was repaired and a run found the chain intact.
 */
export function reportEvent(
  { id, workspaceId }: Pick<BrokenEvent, 'id' | 'workspaceId'>,
  isBroken: boolean,
  foundAtMs: number = Date.now(),
): void {
  const isOver = foundAtMs < (heldAtMs.get(workspaceId) ?? 0)
  changeFound((found) => {
    const others = found.filter((event) => event.id !== id)
    return isBroken && !isOver ? [...others, { id, workspaceId, foundAtMs }] : others
  })
}

/** When this browser requested a run, because its clock and the service's can differ. */
const requestedAtMs = new Map<string, number>()

export function noteRequest(runId: string, atMs: number): void {
  requestedAtMs.set(runId, atMs)
}

/** A run found the chain intact, so what was found before it has been repaired. */
export function forgetBroken({
  id,
  workspaceId,
  createdAt,
}: {
  id: string
  workspaceId: string
  createdAt: string
}): void {
  const runStartedAtMs = requestedAtMs.get(id) ?? Date.parse(createdAt)
  heldAtMs.set(workspaceId, runStartedAtMs)
  queryClient.setQueryData<BrokenRuns>(
    BROKEN_KEY,
    (known) =>
      known && {
        ...known,
        runs: known.runs.filter(
          (run) => run.workspaceId !== workspaceId || run.createdAt > createdAt,
        ),
      },
  )
  changeFound((found) =>
    found.filter((event) => event.workspaceId !== workspaceId || event.foundAtMs >= runStartedAtMs),
  )
}

function changeFound(change: (found: readonly BrokenEvent[]) => readonly BrokenEvent[]): void {
  queryClient.setQueryData<readonly BrokenEvent[]>(FOUND_KEY, (found = NONE) => {
    const changed = change(found)
    return changed.length === 0 && found.length === 0 ? found : changed.slice(-FOUND_MAX)
  })
}
