import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { Member } from '../dashboard/dashboard.ts'
import type { TestApp } from '../app/start-app.ts'

export type Frame = { id: string; event: string; data: string }

export type Source = AsyncDisposable & {
  status: number
  headers: IncomingMessage['headers']
  /** Everything received so far, by event name: `open`, `event`, `gap`, `end`. */
  frames: Frame[]
  /** The last id, including that of a heartbeat. */
  lastId: () => string
  /** True if the server ended the stream. */
  isOver: () => boolean
  body: () => string
  /** Reads nothing more from the connection until `resume`. */
  pause: () => void
  resume: () => void
}

/** Opens a stream like a browser's EventSource. */
export async function openSource(
  app: TestApp,
  member: Member,
  {
    query = '',
    lastId,
    headers = {},
  }: { query?: string; lastId?: string; headers?: Record<string, string> } = {},
): Promise<Source> {
  const request = get(`${app.url}/dashboard/events/live${query}`, {
    agent: false,
    headers: {
      cookie: member.cookie,
      'sec-fetch-site': 'same-origin',
      ...headers,
      ...(lastId !== undefined && { 'last-event-id': lastId }),
    },
  })
  const [response]: IncomingMessage[] = await once(request, 'response')
  if (!response) throw new Error('no response')
  const frames: Frame[] = []
  let text = ''
  let lastSeen = ''
  let isOver = false
  let pending = ''
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    text += chunk
    pending += chunk
    const blocks = pending.split('\n\n')
    pending = blocks.pop() ?? ''
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
      lastSeen = field('id') ?? lastSeen
      const event = field('event')
      if (event === undefined) continue
      frames.push({ id: lastSeen, event, data: field('data') ?? '' })
    }
  })
  for (const name of ['end', 'close', 'error']) response.on(name, () => (isOver = true))
  request.on('error', () => (isOver = true))
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    frames,
    lastId: () => lastSeen,
    isOver: () => isOver,
    body: () => text,
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    [Symbol.asyncDispose]: async () => {
      request.destroy()
    },
  }
}

/** The actions of the events that were received. */
export function actionsOf({ frames }: Source): string[] {
  return frames.filter(({ event }) => event === 'event').map(({ data }) => JSON.parse(data).action)
}
