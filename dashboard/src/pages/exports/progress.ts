import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import { type Export, refreshExports } from './exports.ts'

export const POLL_MS = 1_500
/** A download that broke stays open for days: nobody need look at it every second. */
const IDLE_POLL_MS = 10_000
const IDLE_AFTER_MS = 60_000
const RUNNING_MAX = 50
/** How much of the rate is the last look's; the rest is what it was before. */
const NEWEST_SHARE = 0.5

export type Progress = {
  job: Export
  /** When this number of rows was seen first. */
  movedAtMs: number
  seenAtMs: number
  /** Null until it was looked at twice. */
  rowsPerSecond: number | null
}
type ProgressById = Record<string, Progress>

const KEY = ['exports', 'running'] as const

/** How far the downloads have come that run: one question for all of them. */
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
  // What runs no longer has come to an end, which the list has to say.
  if (Object.keys(before).some((id) => !(id in after))) void refreshExports()
  return after
}

export function progressAfter(
  before: ProgressById,
  jobs: readonly Export[],
  nowMs: number,
): ProgressById {
  const after: ProgressById = {}
  for (const job of jobs) after[job.id] = progressOf(before[job.id], job, nowMs)
  return after
}

function progressOf(before: Progress | undefined, job: Export, nowMs: number): Progress {
  if (!before || nowMs <= before.seenAtMs) {
    const movedAtMs = before?.movedAtMs ?? nowMs
    return { job, movedAtMs, seenAtMs: nowMs, rowsPerSecond: before?.rowsPerSecond ?? null }
  }
  const moved = Number(job.rowsExported) - Number(before.job.rowsExported)
  const newest = (Math.max(0, moved) * 1_000) / (nowMs - before.seenAtMs)
  const { rowsPerSecond: usual } = before
  return {
    job,
    movedAtMs: moved > 0 ? nowMs : before.movedAtMs,
    seenAtMs: nowMs,
    rowsPerSecond: usual === null ? newest : newest * NEWEST_SHARE + usual * (1 - NEWEST_SHARE),
  }
}

function isMoving(progress: ProgressById | undefined): boolean {
  if (progress === undefined) return true
  return Object.values(progress).some(
    ({ movedAtMs, seenAtMs }) => seenAtMs - movedAtMs < IDLE_AFTER_MS,
  )
}
