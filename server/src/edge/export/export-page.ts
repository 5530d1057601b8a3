import type { ExportJob, ExportJobId, ExportStatus } from '../../outlet/export/export-job.ts'
import type { JobPage } from '../../outlet/export/export-job-store.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import { assertId } from '../../platform/id.ts'

const LIMIT_DEFAULT = 50

/**
 * Returns a page of jobs, newest first. `listId` identifies the list, and a cursor works only for its list.
 */
export async function readExportPage(
  cursors: CursorCodec,
  listId: string,
  query: { limit?: number; cursor?: string; status?: ExportStatus },
  list: (page: JobPage) => Promise<ExportJob[]>,
): Promise<{ jobs: ExportJob[]; nextCursor: string | null }> {
  const status = query.status ?? null
  const binding = `exports/${listId}/${status ?? 'all'}`
  const limit = query.limit ?? LIMIT_DEFAULT
  const position = cursors.read(query.cursor, binding)
  const before = position === null ? null : parsePosition(position)
  // One more than requested shows whether there is another page.
  const jobs = await list({ status, before, limit: limit + 1 })
  const hasMore = jobs.length > limit
  if (hasMore) jobs.pop()
  const last = jobs.at(-1)
  return { jobs, nextCursor: hasMore && last ? cursors.encode(positionText(last), binding) : null }
}

function positionText({ createdAt, id }: ExportJob): string {
  return `${createdAt.getTime()}/${id}`
}

function parsePosition(text: string): { createdAt: Date; id: ExportJobId } {
  const [ms = '', id = ''] = text.split('/')
  return { createdAt: new Date(Number(ms)), id: assertId(id) }
}
