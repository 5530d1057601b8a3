import type { ExportInput } from '../../../../../sdk/src/resource/types.ts'
import { OperatorError } from '../../../errors.ts'
import { exportFilters } from '../event-filters.ts'
import type { ClientCommand } from '../run-client.ts'
import { requireFree, requireWritable, saveExport, type SaveOptions } from './save-export.ts'

export type CreateExportOptions = SaveOptions & {
  source: ExportInput['source']
  format: ExportInput['format']
  evidence: NonNullable<ExportInput['evidence']>
  filter: string[]
  from?: string
  to?: string
  limit?: number
  name?: string
  workspace?: string
  download?: string
}

/** `annals exports create`: fixes the rows of an export, and downloads them if wanted. */
export async function startExport(
  command: ClientCommand,
  { download, wait, manifest, force, ...options }: CreateExportOptions,
): Promise<void> {
  const { annals, output, signal } = command
  if (download === undefined && (wait || manifest)) {
    // Nothing would be waited for: a job runs while it is downloaded.
    throw new OperatorError('--wait and --manifest need --download PATH.')
  }
  if (manifest && options.format === 'CSV') {
    throw new OperatorError('Only JSONL files can be proven. Leave out --manifest or --format CSV.')
  }
  if (download !== undefined) {
    await requireWritable(download)
    if (!force) await requireFree(download, { ...(manifest && { manifest }) }, async () => null)
  }
  const { jobId, status } = await annals.exports.create(inputOf(options), { signal })
  if (download === undefined) {
    await output.item({ jobId, status }, [
      ['job', jobId],
      ['status', status],
    ])
    output.note(`Download it within 7 days: annals exports download ${jobId} PATH`)
    return
  }
  output.note(`Downloading export ${jobId}…`)
  await saveExport(
    command,
    { jobId, path: download },
    { ...(wait && { wait }), ...(manifest && { manifest }), ...(force && { force }) },
  )
}

function inputOf({
  source,
  format,
  evidence,
  filter,
  from,
  to,
  limit,
  name,
  workspace,
}: Omit<CreateExportOptions, 'download' | keyof SaveOptions>): ExportInput {
  const filters = exportFilters(filter, { ...(from && { from }), ...(to && { to }) })
  return {
    source,
    format,
    evidence,
    filters: { ...filters, ...(workspace !== undefined && { workspaceId: workspace }) },
    ...(limit !== undefined && { limit }),
    ...(name !== undefined && { name }),
  }
}
