import { Type } from 'typebox'
import type { ExportJob } from '../../../outlet/export/job/export-job.ts'
import { requireSigning } from '../../../outlet/proof/read-proof.ts'
import type { Principal } from '../../../tenancy/principal.ts'
import { ArchiveReadLimiter } from '../../archive-read-limiter.ts'
import { defineRoute } from '../../define-route.ts'
import { finishedResult, type ManifestDeps, manifestJson } from '../../export/export-manifest.ts'
import { type ExportRouteDeps, getExportJob } from '../../export/export-resource.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { asJsonText } from '../../page-json.ts'
import { ExportManifest } from '../../schema/export-manifest.ts'
import { ExportParams } from '../../schema/export.ts'

/** GET /v1/exports/{jobId}/manifest: links the file to the signed ledger. */
export const getExportManifest = defineRoute({
  method: 'GET',
  path: '/v1/exports/:jobId/manifest',
  key: { permission: 'exports' },
  config: { hasOwnLimits: true },
  summary: 'Get the manifest of an export',
  description:
    'Returns the manifest that links the export’s file to the signed ledger, so that anyone can check it offline: the SHA-256 of the file and, for each workspace, a signed checkpoint with the proof of its last line. Keep it next to the file. Until the job is SUCCEEDED and its last events are signed, the response is 409; retry after the delay in `Retry-After`. A 409 without `Retry-After` means that the job can’t get a manifest: rerun it. Each response has the newest checkpoints, and all of them prove the same file.',
  params: ExportParams,
  errors: ['conflict', 'archive_restoring'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(ExportManifest),
  handle: (deps: ManifestDeps & ExportRouteDeps) => {
    const archiveReads = new ArchiveReadLimiter()
    return async ({ principal, params }, reply) => {
      const { companyId, keyId: callerId } = principal
      const call = { companyId, callerId, archiveReads, signal: disconnectSignal(reply) }
      const job = await findJob(deps, principal, { id: params.jobId, signal: call.signal })
      requireSigning(deps)
      const result = finishedResult(job)
      const { json } = await manifestJson(deps, call, job, result)
      asJsonText(reply)
      return json
    }
  },
})

async function findJob(
  deps: ManifestDeps & ExportRouteDeps,
  principal: Principal,
  { id, signal }: { id: string; signal: AbortSignal },
): Promise<ExportJob> {
  using _slot = await deps.slots.take(principal.companyId, signal, principal.keyId)
  return await getExportJob(deps, principal, id)
}
