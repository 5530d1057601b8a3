import { exportAndCheck } from './export-load.ts'
import { walkPages } from './query-load.ts'
import type { SoakContext } from './soak-context.ts'

const IDS_PER_QUERY = 5_000
const EVERY_PAGE = Number.MAX_SAFE_INTEGER
const NO_ID = '00000000-0000-0000-0000-000000000000'

/** Runs `annals verify`, as an operator would after an incident. Returns the number of events. */
export async function verifyLedger({ service, tally, verdicts }: SoakContext, when: string) {
  const startedAtMs = performance.now()
  const { code, stdout, stderr } = await service.run('verify')
  tally.count('verify', code === 0 ? 'run' : 'failed')
  tally.count('verify', 'seconds', Math.round((performance.now() - startedAtMs) / 1_000))
  const describe = () => `after ${when}: exit code ${code}, ${stdout}${stderr}`
  verdicts.check('verify', code === 0, describe)
  return Number(/^ok: (\d+) events/.exec(stdout)?.[1] ?? -1)
}

/** Checks that every event acknowledged since the last check is in the database or the archive. */
export async function checkRecent(soak: SoakContext, when: string): Promise<void> {
  const { book, service, verdicts, world } = soak
  const byWorkspace = Map.groupBy(book.takeRecent(), (n) => book.workspaceOf(n))
  for (const [index, numbers] of byWorkspace) {
    const workspaceId = world.workspaces[index]?.id
    for (let from = 0; from < numbers.length; from += IDS_PER_QUERY) {
      const ids = numbers.slice(from, from + IDS_PER_QUERY).map((n) => book.idOf(n))
      // Ids ascend along a chain, so everything up to the last archived id is in the archive.
      const missing = await service.query<{ id: string }>(
        `select wanted.id
           from unnest($2::uuid[]) as wanted (id)
          where not exists (
                  select from event where event.workspace_id = $1 and event.id = wanted.id)
            and wanted.id > coalesce(
                  (select max(last_id::text)::uuid from segment where workspace_id = $1), $3::uuid)`,
        [workspaceId, ids, NO_ID],
      )
      const [first] = missing
      const describe = () =>
        `after ${when}: ${missing.length} acknowledged ids, ${first?.id}, are gone`
      verdicts.check('ledger', missing.length === 0, describe)
    }
  }
}

/**
 * Checks the whole ledger at the end: verifies it, compares an export with what was sent, and compares
 * the number of events with the chain heads. Queries must return exactly the hot events.
 */
export async function checkLedger(soak: SoakContext): Promise<number> {
  const { service, verdicts, world } = soak
  await checkRecent(soak, 'the load')
  await verifyLedger(soak, 'the load')
  let stored = 0
  for (const company of world.companies) {
    const request = {
      company,
      workspace: null,
      source: 'HOT_AND_ARCHIVED',
      format: 'JSONL',
    } as const
    const exported = await exportAndCheck(soak, request, 'fast')
    verdicts.check('ledger', exported !== null, () => 'the last export could not be had')
    stored += exported?.rowCount ?? 0
  }
  const ids = world.workspaces.map(({ id }) => id)
  const [heads] = await service.query<{ total: string }>(
    'select sum(seq) as total from chain_head where workspace_id = any ($1::uuid[])',
    [ids],
  )
  const isAll = Number(heads?.total) === stored
  verdicts.check('ledger', isAll, () => `${heads?.total} events in chains, ${stored} exported`)
  await checkPages(soak)
  return stored
}

async function checkPages(soak: SoakContext): Promise<void> {
  for (const company of soak.world.companies) {
    for (const { id, key, index } of company.workspaces) {
      const walk = { key, company, indexes: new Set([index]), parameters: {} }
      const pages = await walkPages(soak, walk, { pagesMax: EVERY_PAGE, shallStop: () => false })
      const rows = await soak.service.query<{ id: string }>(
        'select id from event where workspace_id = $1',
        [id],
      )
      const missing = rows.filter((row) => !pages?.has(row.id))
      const isExact = missing.length === 0 && pages?.size === rows.length
      const describe = () =>
        `${id}: ${rows.length} hot events, ${pages?.size} on pages, ${missing.length} missing`
      soak.verdicts.check('queries', isExact, describe)
    }
  }
}
