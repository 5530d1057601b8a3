import type { Reply } from './http-client.ts'
import { checkReply, pause, type SoakContext } from './soak-context.ts'
import type { Company } from './world.ts'

const PAGES_MAX = 150
const RETRY_PAUSE_MS = 300
const BETWEEN_WALKS_MS = 500

type Walk = {
  key: string
  company: Company
  /** The workspaces whose events the key can read. */
  indexes: ReadonlySet<number>
  parameters: Record<string, string>
}

/** Pages repeatedly through everything that a key can read. */
export async function walkQueries(soak: SoakContext): Promise<void> {
  while (!soak.stopping.aborted) {
    const walk = chooseWalk(soak)
    await walkPages(soak, walk, { pagesMax: PAGES_MAX, shallStop: () => soak.stopping.aborted })
    await pause(soak, BETWEEN_WALKS_MS)
  }
}

function chooseWalk({ random, world }: SoakContext): Walk {
  const company = random.pick(world.companies)
  const workspace = random.pick(company.workspaces)
  const own = new Set([workspace.index])
  const all = new Set(company.workspaces.map(({ index }) => index))
  return random.pick<Walk>([
    { key: workspace.key, company, indexes: own, parameters: {} },
    { key: workspace.key, company, indexes: own, parameters: { category: 'billing' } },
    { key: company.key, company, indexes: all, parameters: {} },
    { key: company.key, company, indexes: own, parameters: { workspaceId: workspace.id } },
  ])
}

/** Checks every page and returns the ids. Null if it did not reach the last page. */
export async function walkPages(
  soak: SoakContext,
  { key, company, indexes, parameters }: Walk,
  { pagesMax, shallStop }: { pagesMax: number; shallStop: () => boolean },
): Promise<Set<string> | null> {
  const ids = new Set<string>()
  let cursor: string | null = null
  let last = ''
  for (let pages = 0; pages < pagesMax && !shallStop();) {
    const search = new URLSearchParams({
      limit: '200',
      ...parameters,
      ...(cursor !== null && { cursor }),
    })
    const reply: Reply = await soak.http.send('GET', `/v1/events?${search.toString()}`, { key })
    checkReply(soak, 'query page', reply, [200, 503])
    if (reply.status !== 200) {
      await pause(soak, RETRY_PAUSE_MS)
      continue
    }
    pages += 1
    for (const event of reply.json.data) {
      const position = `${event.timestamp} ${event.id}`
      const isInOrder = last === '' || position < last
      soak.verdicts.check('queries', isInOrder, () => `${position} came after ${last}`)
      last = position
      checkEvent(soak, event, { company, indexes, parameters })
      ids.add(event.id)
    }
    soak.tally.count('query page', 'events', reply.json.data.length)
    cursor = reply.json.nextCursor
    if (cursor === null) return ids
  }
  return null
}

type QueriedEvent = {
  id: string
  companyId: string
  workspaceId: string
  category: string
  metadata: { n?: unknown } | null
}

/** Checks the event's tenant. The strict order of a page already rules out duplicates. */
export function checkEvent(
  { book, verdicts, world }: SoakContext,
  event: QueriedEvent,
  { company, indexes, parameters }: Omit<Walk, 'key'>,
): void {
  const index = world.indexOf(event.workspaceId)
  const n = event.metadata?.n
  const isOurs =
    indexes.has(index) &&
    event.companyId === company.id &&
    book.has(n, index) &&
    (book.idOf(n) ?? event.id) === event.id &&
    (parameters['category'] ?? event.category) === event.category
  verdicts.check('queries', isOurs, () => `not this tenant's event: ${JSON.stringify(event)}`)
}
