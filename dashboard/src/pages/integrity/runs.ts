import { INTEGRITY_KEY } from '../../api/broken-chains.ts'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import type { paths } from '../../api/schema.d.ts'
import { usePages } from '../../parts/table/use-pages.ts'

export type Run =
  paths['/dashboard/integrity/runs/{runId}']['get']['responses'][200]['content']['application/json']

export const POLL_MS = 1_000
const RUNS_PER_PAGE = 20
const RUNS_KEY = [...INTEGRITY_KEY, 'runs'] as const

export const refreshIntegrity = () => queryClient.invalidateQueries({ queryKey: INTEGRITY_KEY })
export const refreshRuns = () => queryClient.invalidateQueries({ queryKey: RUNS_KEY })

/** The runs of a workspace, or of all that the member can see, newest first. */
export function useRuns(workspaceId: string | null) {
  return usePages([...RUNS_KEY, workspaceId], async ({ cursor }) => {
    const query = {
      limit: RUNS_PER_PAGE,
      ...(workspaceId !== null && { workspaceId }),
      ...(cursor !== undefined && { before: cursor }),
    }
    const { runs } = await unwrap(client.GET('/dashboard/integrity/runs', { params: { query } }))
    const last = runs.length === RUNS_PER_PAGE ? runs.at(-1) : undefined
    return { data: runs, nextCursor: last?.id ?? null }
  })
}

/** One run. While it is running, it is read again every second. */
export function runQuery(runId: string) {
  return {
    queryKey: [...INTEGRITY_KEY, 'run', runId],
    queryFn: () =>
      unwrap(client.GET('/dashboard/integrity/runs/{runId}', { params: { path: { runId } } })),
  }
}

/** Whether a run has everything that a certificate shows. Runs by an older version may lack the range. */
export function hasCertificate({ status, checked, lastSeq }: Run): boolean {
  return status === 'HOLDS' && (checked === 0 || lastSeq !== null)
}

export function starterOf({ createdBy: { kind, email } }: Run): string {
  if (kind === 'SCHEDULE') return 'Daily verification'
  return email ?? 'A former member'
}
