import type { Config } from '../../config.ts'
import { OperatorError } from '../../errors.ts'
import { listUsageDays } from '../../outlet/explorer/usage-store.ts'
import type { Webhook } from '../../outlet/webhook/webhook.ts'
import { listWebhooksOf } from '../../outlet/webhook/webhook-store.ts'
import { type CompanyId, parseId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { systemClock as clock } from '../../platform/time/clock.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import { countCompany, readCompanyDetails } from '../../tenancy/company-store.ts'
import { findCompanySummary } from '../../tenancy/company-summary-store.ts'
import { isPlan, PLAN_TERMS } from '../../tenancy/plans.ts'
import {
  listWorkspaceSummaries,
  type WorkspaceSummary,
} from '../../tenancy/workspace/workspace-summary-store.ts'
import { openDatabase } from '../open-database.ts'
import { count, megabytes } from '../output/format.ts'
import { Fields, Rows } from '../output/rows.ts'
import { monthStartAt } from './month-start.ts'
import { printJson, printLines } from '../output/print.ts'

const PAGE_WEBHOOKS = 500

type CompanyReport = Awaited<ReturnType<typeof readReport>>

/** `annals company show`: a company with its plan, its use of the limits, its workspaces and its webhooks. */
export async function showCompany(
  config: Config,
  { company, json }: { company: string; json?: true },
): Promise<void> {
  const companyId = parseId<'company'>(company)
  const unknown = new OperatorError(
    `There is no company with the id ${company}. To list the companies, run: annals company list`,
  )
  if (companyId === null) throw unknown
  await using database = await openDatabase(config, { mayCreate: false })
  const report = await readReport(database.db, companyId)
  if (report === null) throw unknown
  if (json) printJson(report)
  else printReport(report)
}

/** Returns null if the company doesn't exist. */
async function readReport(db: Queryable, companyId: CompanyId) {
  const nowMs = clock()
  const now = new Date(nowMs)
  const monthStart = monthStartAt(nowMs)
  const summary = await findCompanySummary(db, { companyId, monthStart })
  if (summary === null) return null
  const { id, name, plan, createdAt } = summary
  const { allowlist, requiresSecondFactor } = await readCompanyDetails(db, companyId)
  const workspaces = await listWorkspaceSummaries(db, { companyId, workspaceIds: null }, now)
  const idsOf = (some: readonly WorkspaceSummary[]) => some.map((workspace) => workspace.id)
  const customers = idsOf(workspaces.filter(({ kind }) => kind === 'CUSTOMER'))
  return {
    id,
    name,
    plan,
    createdAt,
    limits: isPlan(plan) ? PLAN_TERMS[plan] : null,
    allowlist,
    requiresSecondFactor,
    counts: await countCompany(db, companyId, now),
    usage: await readUsage(db, { workspaceIds: customers, monthStart, nowMs }),
    workspaces,
    webhooks: (await readWebhooks(db, companyId, idsOf(workspaces))).map(webhookState),
  }
}

/** Without the audit log, which counts against no limit. */
async function readUsage(
  db: Queryable,
  {
    workspaceIds,
    monthStart,
    nowMs,
  }: { workspaceIds: readonly WorkspaceId[]; monthStart: Date; nowMs: number },
) {
  const to = new Date(Math.floor(nowMs / DAY_MS) * DAY_MS + DAY_MS)
  const today = new Date(nowMs).toISOString().slice(0, 10)
  const days = await listUsageDays(db, { workspaceIds, from: monthStart, to })
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  return {
    eventsThisMonth: sum(days.map(({ events }) => events)),
    bytesThisMonth: sum(days.map(({ bytes }) => bytes)),
    bytesToday: sum(days.filter(({ day }) => day === today).map(({ bytes }) => bytes)),
  }
}

async function readWebhooks(
  db: Queryable,
  companyId: CompanyId,
  workspaceIds: readonly WorkspaceId[],
): Promise<Webhook[]> {
  const webhooks: Webhook[] = []
  let page: Webhook[]
  do {
    const after = webhooks.at(-1) ?? null
    page = await listWebhooksOf(db, { companyId, workspaceIds, after, limit: PAGE_WEBHOOKS })
    webhooks.push(...page)
  } while (page.length === PAGE_WEBHOOKS)
  return webhooks
}

function webhookState(webhook: Webhook) {
  const { id, workspaceId, name, url, status, disabledReason } = webhook
  const { failureCount, lastSuccessAt, lastFailureAt } = webhook
  const times = { failureCount, lastSuccessAt, lastFailureAt }
  return { id, workspaceId, name, url, status, disabledReason, ...times }
}

function printReport(report: NonNullable<CompanyReport>): void {
  const { limits, counts, usage, allowlist } = report
  const dailyMax = limits?.bytesPerDayMax ?? null
  const rateMax = limits?.eventsPerSecondMax ?? null
  const fields = new Fields()
  fields.add('Company', `${report.name} (${report.id})`)
  fields.add('Created', report.createdAt)
  fields.add('Plan', report.plan)
  fields.add('Hot time', limits && `${limits.hotDays} days`)
  fields.add(
    'Rate limit',
    rateMax === null ? 'none' : `${count(rateMax)} events per second and key`,
  )
  fields.add(
    'Exports',
    limits?.exportRowsMax ? `up to ${count(limits.exportRowsMax)} rows` : 'none',
  )
  fields.add('Events this month', usage.eventsThisMonth)
  const ofLimit = dailyMax === null ? '' : ` of ${megabytes(dailyMax)} per day`
  fields.add('Bytes today', `${megabytes(usage.bytesToday)}${ofLimit}`)
  fields.add('Members', `${counts.members}, including open invitations`)
  fields.add('Company keys', counts.companyKeys)
  fields.add('Open exports', counts.openExports)
  fields.add('Allowlist', allowlist.entries.join(', ') || 'none')
  fields.add('Second factor', report.requiresSecondFactor ? 'required' : 'optional')
  fields.print()
  printLines('')
  new Rows<WorkspaceSummary>([
    { title: 'WORKSPACE', cell: ({ id }) => id },
    { title: 'EVENTS', cell: ({ events }) => events },
    { title: 'KEYS', cell: ({ keys }) => keys },
    { title: 'PROJECTS', cell: ({ projects }) => projects },
    { title: 'WEBHOOKS', cell: ({ webhooks }) => webhooks },
    { title: 'NAME', cell: ({ name, kind }) => (kind === 'SYSTEM' ? `${name} (audit log)` : name) },
  ]).print(report.workspaces)
  if (report.webhooks.length === 0) return
  printLines('')
  new Rows<(typeof report.webhooks)[number]>([
    { title: 'WEBHOOK', cell: ({ id }) => id },
    { title: 'STATUS', cell: ({ status }) => status },
    { title: 'FAILURES', cell: ({ failureCount }) => failureCount },
    { title: 'LAST SUCCESS', cell: ({ lastSuccessAt }) => lastSuccessAt },
    {
      title: 'URL',
      cell: ({ url, disabledReason }) => `${url}  ${disabledReason ?? ''}`.trimEnd(),
    },
  ]).print(report.webhooks)
}
