import type { Config } from '../../config.ts'
import { OperatorError } from '../../errors.ts'
import { findAccount } from '../../tenancy/member/user-store.ts'
import { openDatabase } from '../open-database.ts'
import { Fields } from '../output/rows.ts'
import { accessText, readMemberReports } from './member-report.ts'
import { printJson } from '../output/print.ts'

/** `annals user show`: one member. */
export async function showUser(
  config: Config,
  { email, json }: { email: string; json?: true },
): Promise<void> {
  await using database = await openDatabase(config, { mayCreate: false })
  const account = await findAccount(database.db, email)
  const members = account ? await readMemberReports(database.db, account.companyId) : []
  const member = members.find(({ id }) => id === account?.userId)
  if (!account || !member) throw new OperatorError(`There is no account for ${email}.`)
  const report = { ...member, hasPassword: account.passwordHash !== null }
  if (json) {
    printJson(report)
    return
  }
  const fields = new Fields()
  fields.add('Member', `${report.email} (${report.id})`)
  fields.add('Company', report.companyId)
  fields.add('Role', report.role)
  fields.add('Workspaces', accessText(report))
  fields.add('Created', report.createdAt)
  fields.add('Last seen', report.lastSeenAt ?? 'no open session')
  fields.add('Password', report.hasPassword ? 'set' : 'none')
  fields.add('Second factor', report.hasSecondFactor ? 'set up' : 'none')
  for (const { issuer, subject, usedAt } of report.identities) {
    fields.add('Linked to', `${subject} at ${issuer}, last used ${usedAt.toISOString()}`)
  }
  fields.print()
}
