import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import type { paths } from '../../api/schema.d.ts'
import { usePages } from '../../parts/table/use-pages.ts'
import type { ExportStatus } from './exports-search.ts'

export type Export =
  paths['/dashboard/exports']['get']['responses'][200]['content']['application/json']['data'][number]
export type Cadence = NonNullable<Export['cadence']>
export type ExportBody =
  paths['/dashboard/exports']['post']['requestBody']['content']['application/json']
export type PreflightResult =
  paths['/dashboard/exports/preflight']['post']['responses'][200]['content']['application/json']

const PAGE_EXPORTS = 30
/** Other members create exports too, and pending ones expire. */
const REFRESH_MS = 15_000

type ExportsQuery = {
  status: ExportStatus | undefined
  workspaceId: string | null
  /** The member waits for a change. */
  pollFast: boolean
  fastPollMs: number
}

/** The exports, newest first. */
export function useExports({ status, workspaceId, pollFast, fastPollMs }: ExportsQuery) {
  const asked = { ...(status && { status }), ...(workspaceId !== null && { workspaceId }) }
  return usePages(
    ['exports', 'list', asked],
    (cursorQuery) => {
      const query = { limit: PAGE_EXPORTS, ...asked, ...cursorQuery }
      return unwrap(client.GET('/dashboard/exports', { params: { query } }))
    },
    { refetchMs: pollFast ? fastPollMs : REFRESH_MS },
  )
}

export function refreshExports(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: ['exports', 'list'] })
}

/** What the plan allows, and whether filters are currently available. */
export function useCapabilities() {
  return useQuery({
    queryKey: ['exports', 'capabilities'],
    queryFn: () => unwrap(client.GET('/dashboard/exports/capabilities')),
    staleTime: 30_000,
  })
}

export function readPreflight(body: ExportBody): Promise<PreflightResult> {
  return unwrap(client.POST('/dashboard/exports/preflight', { body }))
}

export function createExport(body: ExportBody): Promise<Export> {
  return unwrap(client.POST('/dashboard/exports', { body }))
}

export function isOpen({ status }: Pick<Export, 'status'>): boolean {
  return status === 'PENDING' || status === 'RUNNING'
}

/** Whether the browser can get the file without a rerun. The file of a schedule is written first. */
export function hasDownload({ status, cadence, isStored }: Export): boolean {
  return isStored || (cadence === null && isOpen({ status }))
}

/** The request that repeats a job. */
export function bodyOfJob(job: Export): ExportBody {
  const { name, source, format, filters, evidence, rowLimit } = job
  const named = name === null ? {} : { name }
  const proven = evidence === 'NONE' ? {} : { evidence: 'COMPLETE' as const }
  return { ...named, source, format, filters, ...proven, limit: Number(rowLimit) }
}

/** What a download contains: only the file, or an evidence pack. */
export type DownloadKind = 'file' | 'pack'

export function downloadPath({ id }: Pick<Export, 'id'>, kind: DownloadKind): string {
  const end = kind === 'pack' ? 'evidence-pack' : 'download'
  return `/dashboard/exports/${encodeURIComponent(id)}/${end}`
}

/** The downloads of an export. It has a pack if evidence was requested and the service signs checkpoints. */
export function useDownloadKinds({ evidence }: Pick<Export, 'evidence'>): DownloadKind[] {
  const { data: capabilities } = useCapabilities()
  const hasPack = evidence !== 'NONE' && capabilities?.evidencePacks === true
  return hasPack ? ['file', 'pack'] : ['file']
}
