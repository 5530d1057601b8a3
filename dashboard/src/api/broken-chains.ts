import { skipToken, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { client, unwrap } from './client.ts'
import { queryClient } from './query-client.ts'

/** An event that failed verification in this browser. */
type BrokenEvent = { id: string; workspaceId: string }

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

/** Remembers that this browser found an event broken or intact. */
export function reportEvent({ id, workspaceId }: BrokenEvent, isBroken: boolean): void {
  changeFound((found) => {
    const others = found.filter((event) => event.id !== id)
    return isBroken ? [...others, { id, workspaceId }] : others
  })
}

/**
 * The events that this browser had found when it requested a run. Times can't tell what was found before a run,
 * because the clocks of the browser and the service can differ.
 */
const foundBefore = new Map<string, readonly BrokenEvent[]>()

/** Requests a run. If it finds the chain intact, what this browser has found so far has been repaired. */
export async function requestRun(workspaceId: string): Promise<void> {
  const found = queryClient.getQueryData<readonly BrokenEvent[]>(FOUND_KEY) ?? NONE
  const { id } = await unwrap(client.POST('/dashboard/integrity/runs', { body: { workspaceId } }))
  foundBefore.set(
    id,
    found.filter((event) => event.workspaceId === workspaceId),
  )
}

/** Call it when a run has found a chain intact. What other members' runs repair is kept until the page is reloaded. */
export function forgetRepaired(runId: string): void {
  const repaired = new Set(foundBefore.get(runId)?.map(({ id }) => id))
  foundBefore.delete(runId)
  changeFound((found) => found.filter(({ id }) => !repaired.has(id)))
}

function changeFound(change: (found: readonly BrokenEvent[]) => readonly BrokenEvent[]): void {
  queryClient.setQueryData<readonly BrokenEvent[]>(FOUND_KEY, (found = NONE) => {
    const changed = change(found)
    return changed.length === 0 && found.length === 0 ? found : changed.slice(-FOUND_MAX)
  })
}
