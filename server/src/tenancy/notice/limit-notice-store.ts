import { sql } from 'kysely'
import { assertId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { COMPANY_BOUNDS } from '../plans.ts'
import type { NoticeDraft } from './notice.ts'

/** From this share of a limit on, there is a notice. */
const SHARE = 0.8

/** The limits, and where to do something about each. */
const LIMITS = {
  workspaces: { max: COMPANY_BOUNDS.workspacesMax, link: '/app/company/workspaces' },
  members: { max: COMPANY_BOUNDS.membersMax, link: '/app/company/members' },
  projects: { max: COMPANY_BOUNDS.projectsPerWorkspaceMax, link: '/app/company/workspaces' },
  keys: { max: COMPANY_BOUNDS.keysPerWorkspaceMax, link: '/app/keys' },
  webhooks: { max: COMPANY_BOUNDS.webhooksPerWorkspaceMax, link: '/app/webhooks' },
  views: { max: COMPANY_BOUNDS.viewsMax, link: '/app/explorer' },
  'export templates': {
    max: COMPANY_BOUNDS.exportTemplatesMax,
    link: '/app/exports?tab=templates',
  },
  'open exports': { max: COMPANY_BOUNDS.openExportsMax, link: '/app/exports' },
} as const
type LimitName = keyof typeof LIMITS

type UseRow = { companyId: string; workspaceId: string | null; name: LimitName; used: number }

/** The limits of which a company uses at least 80%, counted the way the limits are enforced. */
export async function listNearLimits(db: Queryable, now: Date): Promise<NoticeDraft[]> {
  const least = (name: LimitName) => Math.ceil(LIMITS[name].max * SHARE)
  const { rows } = await sql<UseRow>`
    select company_id as "companyId", null::uuid as "workspaceId", 'workspaces' as name, count(*) as used
      from workspace where kind = 'CUSTOMER'
     group by company_id having count(*) >= ${least('workspaces')}
    union all
    select company_id, null, 'members', count(*)
      from (select company_id from app_user
             union all
            select company_id from one_time_link where kind = 'INVITATION') as member
     group by company_id having count(*) >= ${least('members')}
    union all
    select w.company_id, w.id, 'projects', count(*)
      from project p join workspace w on w.id = p.workspace_id
     group by w.company_id, w.id having count(*) >= ${least('projects')}
    union all
    select company_id, workspace_id, 'keys', count(*)
      from api_key
     where revoked_at is null and grace_until is null and (expires_at is null or expires_at > ${now})
     group by company_id, workspace_id having count(*) >= ${least('keys')}
    union all
    select company_id, workspace_id, 'webhooks', count(*)
      from webhook where deleted_at is null
     group by company_id, workspace_id having count(*) >= ${least('webhooks')}
    union all
    select company_id, null, 'views', count(*)
      from explorer_view group by company_id having count(*) >= ${least('views')}
    union all
    select company_id, null, 'export templates', count(*)
      from export_template group by company_id having count(*) >= ${least('export templates')}
    union all
    select company_id, null, 'open exports', count(*)
      from export_job where status in ('PENDING', 'RUNNING')
     group by company_id having count(*) >= ${least('open exports')}`.execute(db)
  return rows.map(toDraft)
}

function toDraft({ companyId, workspaceId, name, used }: UseRow): NoticeDraft {
  const { max, link } = LIMITS[name]
  return {
    companyId: assertId(companyId),
    workspaceId: workspaceId === null ? null : assertId(workspaceId),
    kind: 'LIMIT_NEAR',
    cause: `${name}:${workspaceId ?? ''}`,
    message: `${used} of at most ${max.toLocaleString('en')} ${name} are in use. ${adviceOn(name)}`,
    link,
  }
}

function adviceOn(name: LimitName): string {
  if (name === 'workspaces' || name === 'projects') return 'At the limit, no more can be created.'
  if (name === 'open exports') return 'Download or cancel some that you no longer need.'
  if (name === 'keys') return 'Revoke some that you no longer need.'
  return 'Delete some that you no longer need.'
}
