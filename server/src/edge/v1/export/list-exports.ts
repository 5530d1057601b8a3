import { Type } from 'typebox'
import { listExportJobs } from '../../../outlet/export/job/export-job-store.ts'
import { hiddenWorkspaceOf } from '../../auth/gate.ts'
import { defineRoute } from '../../define-route.ts'
import { readExportPage } from '../../export/export-page.ts'
import { exportRecord } from '../../export/export-record.ts'
import { type ExportRouteDeps, ownerOf } from '../../export/export-resource.ts'
import { asJsonText, listJson } from '../../page-json.ts'
import { ExportPage, ExportQuery } from '../../schema/export.ts'

/** GET /v1/exports: newest first. */
export const listExports = defineRoute({
  method: 'GET',
  path: '/v1/exports',
  key: { permission: 'exports' },
  summary: 'List exports',
  description:
    "Returns export jobs, newest first. A workspace key sees the jobs created with keys of its workspace. A company key without the `audit` permission doesn't see exports of the system workspace. A page ends early if the filters of its jobs are large. A cursor is only valid for the same `status`. Jobs are listed for 90 days after they are final.",
  query: ExportQuery,
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(ExportPage),
  handle:
    (deps: ExportRouteDeps) =>
    async ({ principal, query }, reply) => {
      const owner = ownerOf(principal)
      const hidden = hiddenWorkspaceOf(principal)
      const whose = `${owner.companyId}/${owner.workspaceId ?? 'all'}`
      const { jobs, nextCursor } = await readExportPage(deps.cursors, whose, query, (page) =>
        listExportJobs(deps.db, { ...owner, hidden }, page),
      )
      asJsonText(reply)
      return await listJson('data', jobs, {
        record: exportRecord,
        owner: owner.companyId,
        rest: { nextCursor },
      })
    },
})
