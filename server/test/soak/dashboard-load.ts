import type { Reply } from './http-client.ts'
import { checkEvent } from './query-load.ts'
import { checkReply, pause, type SoakContext } from './soak-context.ts'
import type { Company } from './world.ts'

const BETWEEN_CALLS_MS = 150
const RETRY_PAUSE_MS = 500
const VIEWS = '/dashboard/explorer/views'
const SESSION = '/dashboard/session'
const PAGES_PER_WALK_MAX = 10
const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }

/** A member of each company works in the dashboard: explorer, histogram, filters and views. */
export async function browseDashboard(soak: SoakContext, company: Company): Promise<void> {
  const member = new SoakMember(soak, company)
  const duties = [browseEvents, readHistogram, readOptions, useView, leave]
  while (!soak.stopping.aborted) {
    await soak.random.pick(duties)(soak, member)
    await pause(soak, BETWEEN_CALLS_MS)
  }
}

/** A browser session that signs in when needed. */
export class SoakMember {
  readonly company: Company
  readonly #soak: SoakContext
  #cookie: string | null = null

  constructor(soak: SoakContext, company: Company) {
    this.#soak = soak
    this.company = company
  }

  /** Null if signing in fails. */
  async cookie(): Promise<string | null> {
    if (this.#cookie !== null) return this.#cookie
    const { email, password } = this.company.login
    const options = { body: { email, password }, headers: SAME_ORIGIN }
    const reply = await this.#soak.http.send('POST', SESSION, options)
    checkReply(this.#soak, 'dashboard login', reply, [200, 503])
    if (reply.status === 200) {
      this.#cookie = reply.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? null
    } else {
      await pause(this.#soak, RETRY_PAUSE_MS)
    }
    return this.#cookie
  }

  /** Stepping the clock ahead ends sessions. The next call then signs in again. */
  forgetSession(): void {
    this.#cookie = null
  }

  async call(method: string, path: string, allowed: readonly number[], body?: object) {
    const cookie = await this.cookie()
    if (cookie === null) return null
    const headers = { ...SAME_ORIGIN, cookie }
    const reply = await this.#soak.http.send(method, path, { headers, ...(body && { body }) })
    checkReply(this.#soak, 'dashboard call', reply, [...allowed, 401, 503])
    if (reply.status === 401) this.forgetSession()
    return reply
  }
}

async function browseEvents(soak: SoakContext, member: SoakMember): Promise<void> {
  const { company } = member
  const workspace = soak.random.pick(company.workspaces)
  const isOne = soak.random.chance(0.5)
  const indexes = new Set((isOne ? [workspace] : company.workspaces).map(({ index }) => index))
  const filter = soak.random.pick([{}, { category: 'auth' }, { text: 'user_1' }])
  const parameters: Record<string, string> = {
    limit: '100',
    ...filter,
    ...(isOne && { workspaceId: workspace.id }),
  }
  const seen = new Set<string>()
  let cursor: string | null = null
  for (let pages = 0; pages < PAGES_PER_WALK_MAX && !soak.stopping.aborted; pages += 1) {
    const search = new URLSearchParams({ ...parameters, ...(cursor !== null && { cursor }) })
    const reply: Reply | null = await member.call(
      'GET',
      `/dashboard/events?${search.toString()}`,
      [200],
    )
    if (reply?.status !== 200) return
    for (const event of reply.json.data) {
      const isNew = !seen.has(event.id)
      soak.verdicts.check('queries', isNew, () => `the explorer shows ${event.id} twice`)
      checkEvent(soak, event, { company, indexes, parameters })
      seen.add(event.id)
    }
    cursor = reply.json.nextCursor
    if (cursor === null) return
  }
}

async function readHistogram({ random }: SoakContext, member: SoakMember): Promise<void> {
  const by = random.pick(['category', 'action'])
  await member.call('GET', `/dashboard/events/metrics/histogram?by=${by}`, [200])
}

async function readOptions({ random }: SoakContext, member: SoakMember): Promise<void> {
  const field = random.pick(['category', 'action', 'actorId', 'resourceId'])
  await member.call('GET', `/dashboard/events/filter-options?field=${field}`, [200])
}

/** Saves a view, runs it and deletes it, so that the number of views stays the same. */
async function useView({ random, verdicts }: SoakContext, member: SoakMember): Promise<void> {
  const body = {
    name: `Soak ${random.below(2 ** 32)}`,
    workspaceId: null,
    visibility: 'PRIVATE',
    query: { range: '24h', category: 'billing' },
  }
  const saved = await member.call('POST', VIEWS, [201], body)
  if (saved?.status !== 201) return
  const { id }: { id: string } = saved.json
  await member.call('POST', `${VIEWS}/${id}/run`, [200], {})
  const list = await member.call('GET', VIEWS, [200])
  if (list?.status === 200) {
    const isListed = list.json.views.some((view: { id: string }) => view.id === id)
    verdicts.check('queries', isListed, () => `the saved view ${id} is not listed`)
  }
  // The view may already be deleted if the connection broke before the response.
  await member.call('DELETE', `${VIEWS}/${id}`, [204, 404])
}

async function leave({ random }: SoakContext, member: SoakMember): Promise<void> {
  if (!random.chance(0.1)) return
  await member.call('DELETE', SESSION, [204])
  member.forgetSession()
}
