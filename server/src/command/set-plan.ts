import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'
import { parseId } from '../platform/id.ts'
import { updatePlan } from '../tenancy/company-store.ts'
import { isPlan, PLANS } from '../tenancy/plans.ts'
import { openDatabase } from './open-database.ts'

/** `annals company set-plan`: running services see it within two seconds. */
export async function setPlan(
  config: Config,
  options: { company: string; plan: string },
): Promise<void> {
  if (!isPlan(options.plan)) {
    throw new OperatorError(`--plan must be one of ${PLANS.join(', ')}, got "${options.plan}"`)
  }
  const companyId = parseId<'company'>(options.company)
  await using database = await openDatabase(config)
  const found = companyId && (await updatePlan(database.db, { companyId, plan: options.plan }))
  if (!found) throw new OperatorError(`there is no company ${options.company}`)
  process.stdout.write(`company ${companyId} now has the plan ${options.plan}\n`)
}
