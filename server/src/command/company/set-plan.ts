import type { Config } from '../../config.ts'
import { OperatorError } from '../../errors.ts'
import { webhookResource } from '../../outlet/webhook/webhook-actions.ts'
import { disableCompanyWebhooks } from '../../outlet/webhook/webhook-store.ts'
import { type CompanyId, parseId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { systemClock as clock } from '../../platform/time/clock.ts'
import { changeAs } from '../../tenancy/caller.ts'
import { lockCompany, updatePlan } from '../../tenancy/company-store.ts'
import type { NoticeDraft } from '../../tenancy/notice/notice.ts'
import { raiseNotices } from '../../tenancy/notice/notice-store.ts'
import { isPlan, type Plan, PLAN_TERMS, PLANS } from '../../tenancy/plans.ts'
import { openDatabase } from '../open-database.ts'
import { operatorCaller } from '../operator.ts'
import { printLines } from '../output/print.ts'

/** `annals company set-plan`: running services apply the new plan within two seconds. */
export async function setPlan(
  config: Config,
  options: { company: string; plan: string },
): Promise<void> {
  const { plan } = options
  if (!isPlan(plan)) {
    throw new OperatorError(`--plan must be one of ${PLANS.join(', ')}. Got "${plan}".`)
  }
  const companyId = parseId<'company'>(options.company)
  await using database = await openDatabase(config, { mayCreate: false })
  const disabled = companyId && (await changePlan(database.db, companyId, plan))
  if (disabled === null)
    throw new OperatorError(`There is no company with the id ${options.company}.`)
  printLines(`Company ${companyId} is now on the ${plan} plan.`)
  if (disabled > 0) {
    printLines(
      `Disabled ${disabled} webhooks, because the plan doesn't include webhooks. Their owners can enable them again.`,
    )
  }
}

/** Returns how many webhooks the new plan disabled, or null if the company doesn't exist. */
async function changePlan(db: Queryable, companyId: CompanyId, plan: Plan): Promise<number | null> {
  return await changeAs(operatorCaller(companyId), db, async (trx, record) => {
    const before = await lockCompany(trx, companyId)
    if (before === null) return null
    if (before !== plan) {
      await updatePlan(trx, { companyId, plan })
      const resource = { type: 'company', id: companyId }
      const metadata = { before: { plan: before }, after: { plan } }
      record({ action: 'PLAN_CHANGED', resource, metadata })
    }
    // Without webhooks before, those that are enabled were enabled on such a plan.
    if (!PLAN_TERMS[before].hasWebhooks || PLAN_TERMS[plan].hasWebhooks) return 0
    const reason = `Disabled by the change to the ${plan} plan, which doesn't include webhooks.`
    const disabled = await disableCompanyWebhooks(trx, companyId, {
      reason,
      now: new Date(clock()),
    })
    for (const webhook of disabled) {
      const resource = webhookResource(webhook)
      record({ action: 'WEBHOOK_DISABLED', resource, metadata: { plan, url: webhook.url } })
    }
    if (disabled.length > 0) await raiseNotices(trx, [noticeAbout(companyId, reason)], clock())
    return disabled.length
  })
}

function noticeAbout(companyId: CompanyId, reason: string): NoticeDraft {
  const cause = `plan:${clock()}`
  const message = `All webhooks were disabled. ${reason}`
  return {
    companyId,
    kind: 'WEBHOOK_DISABLED',
    cause,
    workspaceId: null,
    message,
    link: '/app/webhooks',
  }
}
