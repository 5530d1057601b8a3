import type { Config } from '../../config.ts'
import { OperatorError } from '../../errors.ts'
import { parseId } from '../../platform/id.ts'
import { openDatabase } from '../open-database.ts'
import { Rows } from '../output/rows.ts'
import { accessText, type MemberReport, readMemberReports } from './member-report.ts'
import { printJson } from '../output/print.ts'

/** `annals user list`: the members of a company. */
export async function listUsers(
  config: Config,
  { company, json }: { company: string; json?: true },
): Promise<void> {
  const companyId = parseId<'company'>(company)
  await using database = await openDatabase(config, { mayCreate: false })
  const members = companyId === null ? [] : await readMemberReports(database.db, companyId)
  // Every company has an owner.
  if (members.length === 0) {
    throw new OperatorError(
      `There is no company with the id ${company}. To list the companies, run: annals company list`,
    )
  }
  if (json) {
    printJson(...members)
    return
  }
  new Rows<MemberReport>([
    { title: 'EMAIL', cell: ({ email }) => email },
    { title: 'ROLE', cell: ({ role }) => role },
    { title: 'SECOND FACTOR', cell: ({ hasSecondFactor }) => (hasSecondFactor ? 'yes' : 'no') },
    { title: 'LINKED', cell: ({ identities }) => (identities.length > 0 ? 'yes' : 'no') },
    { title: 'LAST SEEN', cell: ({ lastSeenAt }) => lastSeenAt },
    { title: 'WORKSPACES', cell: accessText },
  ]).print(members)
}
