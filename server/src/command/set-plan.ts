import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'
import { parseId } from '../platform/id.ts'
import { createLogger } from '../platform/logger.ts'
import { Database } from '../platform/pg.ts'
import { openStore } from '../store.ts'
import { updatePlan } from '../tenancy/company-store.ts'
import { isPlan, PLANS } from '../tenancy/plans.ts'

/** `annals company set-plan`: running services see it within two seconds. */
export async function setPlan(
  config: Config,
  options: { company: string; plan: string },
): Promise<void> {
  if (!isPlan(options.plan)) {
    throw new OperatorError(`--plan must be one of ${PLANS.join(', ')}, got "${options.plan}"`)
  }
  const logger = createLogger('warn', 'stderr')
  const companyId = parseId<'company'>(options.company)
  await using store = await openStore(config, { logger, exclusive: false })
  await using database = new Database({
    connection: store.connection,
    role: 'annals_serving',
    connectionsMax: 1,
    logger,
  })
  const found = companyId && (await updatePlan(database.db, { companyId, plan: options.plan }))
  if (!found) throw new OperatorError(`there is no company ${options.company}`)
  process.stdout.write(`company ${companyId} now has the plan ${options.plan}\n`)
}
