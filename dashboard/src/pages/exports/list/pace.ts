import type { Export } from '../exports.ts'

/** The weight of the latest sample in the moving average. */
const NEWEST_WEIGHT = 0.5

export type Progress = {
  job: Export
  /** When this number of rows was first seen. */
  movedAtMs: number
  seenAtMs: number
  /** Null until there are two samples. */
  rowsPerSecond: number | null
}
export type ProgressById = Record<string, Progress>

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
    rowsPerSecond: usual === null ? newest : newest * NEWEST_WEIGHT + usual * (1 - NEWEST_WEIGHT),
  }
}
