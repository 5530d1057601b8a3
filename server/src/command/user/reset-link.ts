import { baseUrlOf } from '../../base-url.ts'
import type { Config } from '../../config.ts'
import { linkUrl } from '../../edge/dashboard/link-text.ts'
import { OperatorError } from '../../errors.ts'
import { systemClock as clock } from '../../platform/time/clock.ts'
import { changeAs } from '../../tenancy/caller.ts'
import { insertResetLink } from '../../tenancy/member/one-time-link-store.ts'
import { findAccount } from '../../tenancy/member/user-store.ts'
import { openDatabase } from '../open-database.ts'
import { operatorCaller } from '../operator.ts'
import { printLines, printNotes } from '../output/print.ts'

/** `annals user reset-link`: lets a member back in when no other member can reset their password. */
export async function printResetLink(config: Config, options: { email: string }): Promise<void> {
  await using database = await openDatabase(config, { mayCreate: false })
  const { db } = database
  const account = await findAccount(db, options.email)
  if (!account) throw new OperatorError(`There is no account for ${options.email}.`)
  const { companyId, userId, email } = account
  const link = await changeAs(operatorCaller(companyId), db, async (trx, record) => {
    const resource = { type: 'user', id: userId }
    record({ action: 'PASSWORD_RESET_REQUESTED', resource, metadata: { email } })
    return await insertResetLink(trx, { companyId, userId, email, createdBy: null, nowMs: clock() })
  })
  printLines(linkUrl(baseUrlOf(config), link.token))
  const until = link.expiresAt.toISOString()
  printNotes(`The link sets a new password for ${email}. It works once and expires at ${until}.`)
}
