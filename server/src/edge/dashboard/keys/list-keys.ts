import { assertId } from '../../../platform/id.ts'
import { listCompanyKeys } from '../../../tenancy/key/company-key-store.ts'
import { readCompanyDetails } from '../../../tenancy/company-store.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { KeyPage, KeyQuery } from '../../schema/dashboard/key.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { keyRecord } from './key-record.ts'

const LIMIT_DEFAULT = 50

/** GET /dashboard/keys: newest first, including revoked and expired keys. */
export const listKeys = defineRoute({
  method: 'GET',
  path: '/dashboard/keys',
  member: 'keys.read',
  summary: 'List keys',
  description:
    'Returns keys, newest first, including expired and revoked keys. Secrets are never included.',
  query: KeyQuery,
  errors: ['not_found'],
  response: KeyPage,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'cursors' | 'keyUse'>) =>
    async ({ viewer, query }, reply) =>
      await readOrReportDrift(reply, { data: [], nextCursor: null }, async () => {
        const { companyId } = viewer
        const workspaceId =
          query.workspaceId === undefined
            ? null
            : await visibleWorkspace(deps.db, viewer, query.workspaceId)
        const binding = `keys/${companyId}/${viewer.userId}/${workspaceId ?? 'all'}`
        const limit = query.limit ?? LIMIT_DEFAULT
        const position = deps.cursors.read(query.cursor, binding)
        const before = position === null ? null : assertId<'key'>(position)
        // One more than requested shows whether there is another page.
        const wanted = { companyId, workspaceId, before, limit: limit + 1 }
        const keys = await listCompanyKeys(deps.db, wanted)
        const { allowlist } = await readCompanyDetails(deps.db, companyId)
        const about = { companyHasAllowlist: allowlist.entries.length > 0, nowMs: deps.clock() }
        const page = keys.slice(0, limit)
        const last = page.at(-1)
        return {
          data: page.map((key) => keyRecord(key, deps, about)),
          nextCursor: keys.length > limit && last ? deps.cursors.encode(last.id, binding) : null,
        }
      }),
})
