import { type DownloadStyle, downloadWhole, type ExportJob, rerunJob } from './export-download.ts'
import type { ExportFormat, ExportSource } from './export-rows.ts'
import { checkReply, pause, type SoakContext } from './soak-context.ts'
import type { Company, Workspace } from './world.ts'

const BETWEEN_EXPORTS_MS = 1_000
const SOURCES: readonly ExportSource[] = ['HOT', 'ARCHIVED', 'HOT_AND_ARCHIVED']
const STYLES: readonly DownloadStyle[] = ['fast', 'slow', 'hang up']
/** Archive exports require a time range. This one covers everything. */
const ALL_TIMES = { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }

export type ExportRequest = {
  company: Company
  /** Null: the whole company. */
  workspace: Workspace | null
  source: ExportSource
  format: ExportFormat
}

/** Creates exports of all kinds, downloads and reruns each, and compares the two downloads. */
export async function exportEvents(soak: SoakContext): Promise<void> {
  const { random, world } = soak
  while (!soak.stopping.aborted) {
    const company = random.pick(world.companies)
    const workspace = random.chance(0.8) ? random.pick(company.workspaces) : null
    const source = random.pick(SOURCES)
    const format = random.pick<ExportFormat>(['JSONL', 'CSV'])
    await exportOnce(soak, { company, workspace, source, format })
    await pause(soak, BETWEEN_EXPORTS_MS)
  }
}

async function exportOnce(soak: SoakContext, request: ExportRequest): Promise<void> {
  const first = await exportAndCheck(soak, request, soak.random.pick(STYLES))
  if (!first) return
  const id = await rerunJob(soak, first.job)
  if (id === null) return
  const second = await downloadWhole(soak, { ...first.job, id }, soak.random.pick(STYLES))
  if (!second) return
  const isSame = second.sha256 === first.sha256
  const describe = () => `the rerun ${id} of ${first.job.id} has other bytes`
  soak.verdicts.check('exports', isSame, describe)
}

/** Null if the service was unavailable. */
export async function exportAndCheck(
  soak: SoakContext,
  { company, workspace, source, format }: ExportRequest,
  style: DownloadStyle,
): Promise<{ job: ExportJob; sha256: string; rowCount: number } | null> {
  const { http, book, verdicts } = soak
  const key = workspace?.key ?? company.key
  const acknowledged = book.snapshot()
  const reply = await http.send('POST', '/v1/exports', {
    key,
    body: { source, format, ...(source !== 'HOT' && { filters: ALL_TIMES }) },
  })
  checkReply(soak, 'export', reply, [201, 503])
  if (reply.status !== 201) return null
  const job: ExportJob = { id: reply.json.jobId, key, format }
  const download = await downloadWhole(soak, job, style)
  if (!download) return null
  const { sha256, rows } = download
  const indexes = new Set((workspace ? [workspace] : company.workspaces).map(({ index }) => index))
  rows.checkComplete(source, acknowledged, indexes)
  verdicts.check('exports', true, () => '')
  return { job, sha256, rowCount: rows.rowCount }
}
