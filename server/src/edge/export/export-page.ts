import type { ExportJob, ExportJobId, ExportStatus } from '../../outlet/export/job/export-job.ts'
import type { JobPage } from '../../outlet/export/job/export-job-store.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import { assertId } from '../../platform/id.ts'

const LIMIT_DEFAULT = 50
/** A job with the largest filters takes 80 kB of JSON, so jobs are read in parts, and a page can end early. */
const ROWS_PER_READ = 25
const FILTER_LENGTH_MAX = 128 * 1_024

/**
 * Returns a page of jobs, newest first. It can have fewer than its limit if their filters are large. `listId`
 * identifies the list, and a cursor works only for its list.
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
  let before: JobPage['before'] = position === null ? null : parsePosition(position)
  const jobs: ExportJob[] = []
  let filterLength = 0
  let hasMore = true
  while (hasMore && jobs.length < limit && filterLength < FILTER_LENGTH_MAX) {
    const rows = Math.min(ROWS_PER_READ, limit - jobs.length)
    // One more than requested shows whether there is another page.
    const read = await list({ status, before, limit: rows + 1 })
    hasMore = read.length > rows
    jobs.push(...read.slice(0, rows))
    before = jobs.at(-1) ?? null
    filterLength = jobs.reduce((sum, job) => sum + lengthOf(job), 0)
  }
  const last = jobs.at(-1)
  return { jobs, nextCursor: hasMore && last ? cursors.encode(positionText(last), binding) : null }
}

function lengthOf({ filter }: ExportJob): number {
  return JSON.stringify(filter).length
}

function positionText({ createdAt, id }: ExportJob): string {
  return `${createdAt.getTime()}/${id}`
}

function parsePosition(text: string): { createdAt: Date; id: ExportJobId } {
  const [ms = '', id = ''] = text.split('/')
  return { createdAt: new Date(Number(ms)), id: assertId(id) }
}
