import type { Static } from 'typebox'
import { ApiError, type ErrorDetail } from '../../errors.ts'
import type { ColdCache } from '../../ledger/segment/cold-cache.ts'
import type { ExportEvidence, ExportFormat, ExportJob } from '../../outlet/export/job/export-job.ts'
import { findExportJob, type JobOwner } from '../../outlet/export/job/export-job-store.ts'
import type { ExportDeps, ExportRequest } from '../../outlet/export/exporter.ts'
import type { Clock } from '../../platform/time/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import { parseId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Principal } from '../../tenancy/principal.ts'
import {
  findKeyWorkspace,
  listCustomerWorkspaces,
} from '../../tenancy/workspace/workspace-store.ts'
import { requireAudit } from '../auth/gate.ts'
import type { KeyAccess } from '../auth/key-access.ts'
import type { DownloadManager } from './download-manager.ts'
import type { DownloadRefusals } from './download-refusals.ts'
import { readFilter } from '../event/event-filter-input.ts'
import { readOptionalName } from '../name-input.ts'
import { refuseLargeFilter } from '../event/stored-size.ts'
import type { ExportInput, RequestedEvidence } from '../schema/export.ts'

export type ExportRouteDeps = {
  keyAccess: KeyAccess
  clock: Clock
  db: Queryable
  cursors: CursorCodec
  exports: ExportDeps
  downloads: DownloadManager
  refusals: DownloadRefusals
  /** What this node has just read from the archive. */
  coldCache: ColdCache
}

/** A workspace key sees the jobs that were created with keys of its workspace. */
export function ownerOf({ companyId, workspaceId }: Principal): JobOwner {
  return { companyId, workspaceId }
}

/** Returns the job in a path. Another tenant's job, an unknown id and an invalid id all get the same 404. */
export async function getExportJob(
  { db }: Pick<ExportRouteDeps, 'db'>,
  principal: Principal,
  id: string,
): Promise<ExportJob> {
  const jobId = parseId<'export-job'>(id)
  const job = jobId && (await findExportJob(db, ownerOf(principal), jobId))
  if (!job) throw new ApiError('not_found', { message: EXPORT_NOT_FOUND })
  requireAudit(principal, job.filterWorkspaceId)
  return job
}

const EXPORT_NOT_FOUND =
  "This key can't see an export with this id. GET /v1/exports lists the exports that it can see. Exports are deleted 90 days after they end."

/** The job stores its filters, and lists return many jobs at once. */
const METADATA_BYTES_MAX = 16_384

/** Reads an export request, limited to what the key can see. */
export async function readExportRequest(
  { db }: Pick<ExportRouteDeps, 'db'>,
  principal: Principal,
  { name, source, format, filters = {}, evidence, limit }: Static<typeof ExportInput>,
): Promise<ExportRequest> {
  refuseLargeFilter('/filters/metadata', filters.metadata ?? {}, METADATA_BYTES_MAX)
  const filter = readFilter(filters, { fromPath: '/filters/from' })
  if (source !== 'HOT') refuseMissingTimes(filters)
  return {
    ...ownerOf(principal),
    createdBy: null,
    name: readOptionalName(name),
    plan: principal.plan,
    source,
    format,
    filter,
    evidence: readEvidence(evidence, format),
    limit: limit ?? null,
    ...(await readWorkspaces(db, principal, filters.workspaceId)),
  }
}

/** CSV has no room for stubs, and nothing to recompute hashes from. */
export function readEvidence(
  evidence: Static<typeof RequestedEvidence> = 'NONE',
  format: ExportFormat,
): ExportEvidence {
  if (evidence === 'NONE' || format === 'JSONL') return evidence
  const message = 'COMPLETE requires the format JSONL'
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /evidence ${message}.`,
    details: [{ path: '/evidence', message }],
  })
}

/** Without them, a search would scan years of events. */
export function refuseMissingTimes(filters: { from?: string; to?: string }): void {
  const details: ErrorDetail[] = (['from', 'to'] as const)
    .filter((name) => filters[name] === undefined)
    .map((name) => ({ path: `/filters/${name}`, message: 'is required unless the source is HOT' }))
  const [first] = details
  if (!first) return
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: ${first.path} ${first.message}.`,
    details,
  })
}

type Workspaces = Pick<ExportRequest, 'filterWorkspaceId' | 'workspaceIds'>

async function readWorkspaces(
  db: Queryable,
  principal: Principal,
  named: string | undefined,
): Promise<Workspaces> {
  const workspaceId = named === undefined ? null : parseId<'workspace'>(named)
  if (principal.scope === 'WORKSPACE') return ownWorkspace(principal.workspaceId, workspaceId)
  if (workspaceId === null) {
    const workspaceIds = await listCustomerWorkspaces(db, principal.companyId)
    return { filterWorkspaceId: null, workspaceIds }
  }
  if (!(await findKeyWorkspace(db, principal, workspaceId))) {
    throw new ApiError('not_found', {
      message: 'The company has no workspace with the id in filters.workspaceId.',
    })
  }
  requireAudit(principal, workspaceId)
  return { filterWorkspaceId: workspaceId, workspaceIds: [workspaceId] }
}

/** Doesn't check whether the other workspace exists, so the response can't be used to probe ids. */
function ownWorkspace(own: WorkspaceId, named: WorkspaceId | null): Workspaces {
  if (named === null || named === own) return { filterWorkspaceId: named, workspaceIds: [own] }
  throw new ApiError('insufficient_scope', {
    message:
      'This key has workspace scope and can only export events of its own workspace. Omit filters.workspaceId, or use a company key.',
  })
}
