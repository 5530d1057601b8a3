import type { FastifyReply, FastifyRequest } from 'fastify'
import { ALLOWLIST_ENTRIES_MAX, compileRanges, isInRanges } from '../../../tenancy/allowlist.ts'
import * as companyStore from '../../../tenancy/company-store.ts'
import { COMPANY_BOUNDS, PLAN_TERMS } from '../../../tenancy/plans.ts'
import { isAllowed } from '../../../tenancy/policy.ts'
import { defineRoute } from '../../define-route.ts'
import { CompanyRecord } from '../../schema/dashboard/company.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'

type Deps = Pick<DashboardDeps, 'db' | 'clock' | 'hasRateLimits'>

/** GET /dashboard/company: its plan, its allowlist, and how much of each limit is used. */
export const getCompany = defineRoute({
  method: 'GET',
  path: '/dashboard/company',
  member: 'company.read',
  summary: 'Get the company',
  description: 'Returns the company of the signed-in member.',
  response: CompanyRecord,
  handle: (deps: Deps) => async (request, reply) => await companyRecord(deps, request, reply),
})

export async function companyRecord(
  { db, clock, hasRateLimits }: Deps,
  { viewer: { companyId, plan, role }, clientAddress: address }: FastifyRequest,
  reply: FastifyReply,
) {
  const details = await companyStore.readCompanyDetails(db, companyId)
  const { name, createdAt, allowlist, requiresSecondFactor } = details
  const isManager = isAllowed(role, 'company.manage')
  const countAll = () => companyStore.countCompany(db, companyId, new Date(clock()))
  const counts = isManager ? await readOrReportDrift(reply, null, countAll) : null
  const terms = PLAN_TERMS[plan]
  return {
    id: companyId,
    name,
    createdAt: createdAt.toISOString(),
    plan: {
      name: plan,
      ...terms,
      eventsPerSecondMax: hasRateLimits ? terms.eventsPerSecondMax : null,
      bytesPerDayMax: hasRateLimits ? terms.bytesPerDayMax : null,
    },
    allowlist: isManager
      ? {
          entries: [...allowlist.entries],
          forAllCalls: allowlist.forAllCalls,
          forDashboard: allowlist.forDashboard,
          entriesMax: ALLOWLIST_ENTRIES_MAX,
        }
      : null,
    bounds: counts && boundsOf(counts),
    requiresSecondFactor,
    address,
    isAddressOnAllowlist: isInRanges(address, compileRanges(allowlist.entries)),
  }
}

function boundsOf({
  workspaces,
  members,
  companyKeys,
  views,
  openExports,
}: companyStore.CompanyCounts) {
  const { projectsPerWorkspaceMax, keysPerWorkspaceMax, webhooksPerWorkspaceMax } = COMPANY_BOUNDS
  return {
    workspaces: { used: workspaces, max: COMPANY_BOUNDS.workspacesMax },
    members: { used: members, max: COMPANY_BOUNDS.membersMax },
    companyKeys: { used: companyKeys, max: keysPerWorkspaceMax },
    views: { used: views, max: COMPANY_BOUNDS.viewsMax },
    openExports: { used: openExports, max: COMPANY_BOUNDS.openExportsMax },
    projectsPerWorkspaceMax,
    keysPerWorkspaceMax,
    webhooksPerWorkspaceMax,
  }
}
