import { get, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { SoakMember } from './dashboard-load.ts'
import { checkEvent } from './query-load.ts'
import { pause, type SoakContext } from './soak-context.ts'
import type { Company } from './world.ts'

const REOPEN_PAUSE_MS = 500
/** After this time the browser closes the stream, because the member opens another page. */
const OPEN_MS_MAX = 60_000

/** Follows a company's new events as the explorer does, and reopens the stream when it ends. */
export async function followLive(soak: SoakContext, company: Company): Promise<void> {
  const member = new SoakMember(soak, company)
  let lastId = ''
  while (!soak.stopping.aborted) {
    const cookie = await member.cookie()
    if (cookie === null) continue
    const opened = await open(soak, cookie, lastId)
    soak.tally.count('live tail', opened ? String(opened.statusCode) : 'broken')
    if (opened?.statusCode === 200) {
      lastId = await readStream(soak, company, opened, lastId)
    } else {
      opened?.resume()
      // 401 after a clock step; 429 while the service has not yet noticed that a stream ended.
      const isAllowed = [undefined, 401, 429, 503].includes(opened?.statusCode)
      soak.verdicts.check('responses', isAllowed, () => `live tail: ${opened?.statusCode}`)
      if (opened?.statusCode === 401) member.forgetSession()
    }
    await pause(soak, REOPEN_PAUSE_MS)
  }
}

function open(
  { service, stopping }: SoakContext,
  cookie: string,
  lastId: string,
): Promise<IncomingMessage | null> {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(OPEN_MS_MAX)])
  return new Promise((resolve) => {
    const request = get(`${service.url}/dashboard/events/live`, {
      agent: false,
      signal,
      headers: {
        cookie,
        'sec-fetch-site': 'same-origin',
        ...(lastId !== '' && { 'last-event-id': lastId }),
      },
    })
    request.on('response', resolve)
    request.on('error', () => resolve(null))
  })
}

/** Resolves with the id to resume from when the stream has ended, however it ended. */
async function readStream(
  soak: SoakContext,
  company: Company,
  response: IncomingMessage,
  resumedFrom: string,
): Promise<string> {
  const indexes = new Set(company.workspaces.map(({ index }) => index))
  const seen = new Set<string>()
  let lastId = resumedFrom
  let name = ''
  response.on('error', () => {})
  try {
    for await (const line of createInterface({ input: response })) {
      const [, field, value = ''] = /^(id|event|data): (.*)$/.exec(line) ?? []
      if (field === 'id') lastId = value
      if (field === 'event') name = value
      if (field !== 'data' || name === '') continue
      soak.tally.count('live tail', name)
      if (name !== 'event') continue
      const event = JSON.parse(value)
      const isNew = !seen.has(event.id)
      soak.verdicts.check('queries', isNew, () => `the live tail shows ${event.id} twice`)
      seen.add(event.id)
      checkEvent(soak, event, { company, indexes, parameters: {} })
    }
  } catch {
    // The connection broke. The next stream resumes from the last id.
  }
  return lastId
}
