import type { Config } from '../../config.ts'
import { systemClock as clock } from '../../platform/time/clock.ts'
import { type CompanySummary, listCompanySummaries } from '../../tenancy/company-summary-store.ts'
import { openDatabase } from '../open-database.ts'
import { Rows } from '../output/rows.ts'
import { monthStartAt } from './month-start.ts'
import { printJson } from '../output/print.ts'

const PAGE_COMPANIES = 200

/** `annals company list`: reads and prints page by page, because there may be many thousands. */
export async function listCompanies(config: Config, { json }: { json?: true }): Promise<void> {
  await using database = await openDatabase(config, { mayCreate: false })
  const rows = new Rows<CompanySummary>([
    { title: 'ID', cell: ({ id }) => id },
    { title: 'PLAN', cell: ({ plan }) => plan },
    { title: 'CREATED', cell: ({ createdAt }) => createdAt },
    { title: 'WORKSPACES', cell: ({ workspaces }) => workspaces },
    { title: 'MEMBERS', cell: ({ members }) => members },
    { title: 'EVENTS THIS MONTH', cell: ({ eventsThisMonth }) => eventsThisMonth },
    { title: 'NAME', cell: ({ name }) => name },
  ])
  const monthStart = monthStartAt(clock())
  let after: CompanySummary['id'] | null = null
  do {
    const query = { after, limit: PAGE_COMPANIES, monthStart }
    const page: CompanySummary[] = await listCompanySummaries(database.db, query)
    if (json) printJson(...page)
    else rows.print(page)
    after = page.length < PAGE_COMPANIES ? null : (page.at(-1)?.id ?? null)
    // The reader of a pipe may have seen enough.
  } while (after !== null && process.stdout.errored === null)
}
