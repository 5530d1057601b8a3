import { NO_FILTER } from '../../../ledger/filter/event-filter.ts'
import { readHotPage } from '../../../ledger/hot/hot-page-store.ts'
import { withDeadline } from '../../../platform/time/deadline.ts'
import { HOUR_MS } from '../../../platform/time/time-units.ts'
import { type ExportDeps, type ExportRequest, planExport } from '../exporter.ts'

const PROBE_MS_MAX = 2_000
const PROBED_MS = HOUR_MS

/**
 * Checks whether a filtered export of hot events works at this moment: plans one without storing it, and
 * reads an event. Throws if that fails or takes too long.
 */
export async function probeFilteredHot(
  deps: ExportDeps,
  by: Pick<ExportRequest, 'companyId' | 'plan' | 'workspaceIds'>,
): Promise<void> {
  const late = () => new Error('the probe of a filtered export took too long')
  await withDeadline(probe(deps, by), { timeoutMs: PROBE_MS_MAX, late })
}

async function probe(
  deps: ExportDeps,
  by: Pick<ExportRequest, 'companyId' | 'plan' | 'workspaceIds'>,
): Promise<void> {
  const filter = { ...NO_FILTER, fromMs: deps.clock() - PROBED_MS, category: 'x', text: 'x' }
  const { ranges } = await planExport(deps, {
    ...by,
    workspaceId: null,
    createdBy: null,
    name: null,
    filterWorkspaceId: null,
    source: 'HOT',
    format: 'JSONL',
    filter,
    evidence: 'NONE',
    limit: 1,
  })
  const [range] = ranges
  const page = range ?? by.workspaceIds.map((workspaceId) => ({ workspaceId, toSeq: 1 }))[0]
  // Reading the last event is enough to know that events can be read.
  if (page) await readHotPage(deps.database, { ...page, fromSeq: page.toSeq, filter, limit: 1 })
}
