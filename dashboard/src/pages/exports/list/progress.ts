import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import { refreshExports } from '../exports.ts'
import { progressAfter, type ProgressById } from './pace.ts'

export const POLL_MS = 1_500
/** A broken download stays open for days, so it is polled less often. */
const IDLE_POLL_MS = 10_000
const IDLE_AFTER_MS = 60_000
const RUNNING_MAX = 50

const KEY = ['exports', 'running'] as const

/** The progress of all running downloads, from one request. */
export function useProgress(hasRunning: boolean): ProgressById {
  const { data } = useQuery({
    queryKey: KEY,
    queryFn: readProgress,
    enabled: hasRunning,
    staleTime: 0,
    refetchInterval: ({ state }) => (isMoving(state.data) ? POLL_MS : IDLE_POLL_MS),
  })
  return data ?? {}
}

async function readProgress(): Promise<ProgressById> {
  const { data } = await unwrap(
    client.GET('/dashboard/exports', {
      params: { query: { status: 'RUNNING', limit: RUNNING_MAX } },
    }),
  )
  const before = queryClient.getQueryData<ProgressById>(KEY) ?? {}
  const after = progressAfter(before, data, Date.now())
  // An export that is no longer running has ended, so the list must be reloaded.
  if (Object.keys(before).some((id) => !(id in after))) void refreshExports()
  return after
}

function isMoving(progress: ProgressById | undefined): boolean {
  if (progress === undefined) return true
  return Object.values(progress).some(
    ({ movedAtMs, seenAtMs }) => seenAtMs - movedAtMs < IDLE_AFTER_MS,
  )
}
