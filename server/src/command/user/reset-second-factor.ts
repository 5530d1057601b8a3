import type { Config } from '../../config.ts'
import { OperatorError } from '../../errors.ts'
import { changeAs } from '../../tenancy/caller.ts'
import { resetSecondFactor } from '../../tenancy/sign-in/reset-second-factor.ts'
import { findAccount } from '../../tenancy/member/user-store.ts'
import { openDatabase } from '../open-database.ts'
import { operatorCaller } from '../operator.ts'
import { printLines } from '../output/print.ts'

/** `annals user reset-second-factor`: for a member who lost theirs when no other member can reset it. */
export async function resetFactorOf(config: Config, options: { email: string }): Promise<void> {
  await using database = await openDatabase(config, { mayCreate: false })
  const { db } = database
  const account = await findAccount(db, options.email)
  if (!account) throw new OperatorError(`There is no account for ${options.email}.`)
  const isReset = await changeAs(operatorCaller(account.companyId), db, async (trx, record) => {
    const entry = await resetSecondFactor(trx, account)
    if (entry) record(entry)
    return entry !== null
  })
  if (!isReset) throw new OperatorError(`${account.email} has no second factor.`)
  printLines(`The second factor of ${account.email} is removed, and their sessions have ended.`)
}
