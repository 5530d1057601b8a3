import { useQuery } from '@tanstack/react-query'
import { queryClient } from '../../../api/query-client.ts'
import { bodyOfJob, type Export, type PreflightResult, readPreflight } from '../exports.ts'

const keyOf = (jobId: string) => ['exports', 'expected-rows', jobId] as const

/** How many rows a running download will have, about. Null while unknown. */
export function useExpectedRows(job: Export, isEnabled: boolean): number | null {
  const { data } = useQuery({
    queryKey: keyOf(job.id),
    queryFn: async () => expectedRowsOf(await readPreflight(bodyOfJob(job))),
    enabled: isEnabled,
    // The rows of an export are fixed, and counting them costs the service time.
    staleTime: Infinity,
    retry: false,
  })
  return data ?? null
}

/** Keeps a number that is already known, so that it isn't counted again. */
export function setExpectedRows(jobId: string, rows: number): void {
  queryClient.setQueryData(keyOf(jobId), rows)
}

export function expectedRowsOf({ rows, rowLimit }: PreflightResult): number {
  return Math.min(Number(rows), Number(rowLimit))
}
