import type { Config } from '../../config.ts'
import { OperatorError } from '../../errors.ts'
import { parseId } from '../../platform/id.ts'
import { changeAs } from '../../tenancy/caller.ts'
import { lockCompany, openDashboard } from '../../tenancy/company-store.ts'
import { openDatabase } from '../open-database.ts'
import { operatorCaller } from '../operator.ts'
import { printLines } from '../output/print.ts'

/** `annals company open-dashboard`: for members who can no longer reach it from any allowed address. */
export async function openDashboardOf(config: Config, options: { company: string }): Promise<void> {
  const companyId = parseId<'company'>(options.company)
  const unknown = new OperatorError(`There is no company with the id ${options.company}.`)
  if (companyId === null) throw unknown
  await using database = await openDatabase(config, { mayCreate: false })
  const isOpened = await changeAs(operatorCaller(companyId), database.db, async (trx, record) => {
    if ((await lockCompany(trx, companyId)) === null) throw unknown
    if (!(await openDashboard(trx, companyId))) return false
    record({
      action: 'ALLOWLIST_CHANGED',
      resource: { type: 'company', id: companyId },
      metadata: { before: { forDashboard: true }, after: { forDashboard: false } },
    })
    return true
  })
  printLines(
    isOpened
      ? `Members of company ${companyId} can use the dashboard from every address.`
      : `The allowlist of company ${companyId} doesn't apply to the dashboard.`,
  )
}
