import { requestBytes, runLoad } from './http-load.ts'
import { sampleEvent } from './sample-event.ts'
import type { Service } from './service.ts'

const BATCH = 500
const CONNECTIONS = 4
const SEED_MS_MAX = 20 * 60_000
const DAY_MS = 86_400_000

/** Sends `count` events whose timestamps are spread evenly over the last `days`, oldest first. */
export async function seedEvents(
  service: Service,
  {
    key,
    count,
    days,
    more = () => ({}),
  }: {
    key: string
    count: number
    days: number
    /** Additional fields of the nth event. */
    more?: (nth: number) => Record<string, unknown>
  },
): Promise<void> {
  let next = 0
  const startMs = Date.now() - days * DAY_MS
  const body = (): string => {
    const events = Array.from({ length: Math.min(BATCH, count - next) }, () => {
      const nth = next
      next += 1
      const at = new Date(startMs + Math.floor((nth / count) * days * DAY_MS)).toISOString()
      return { ...sampleEvent(nth, at), ...more(nth) }
    })
    return JSON.stringify({ events })
  }
  const result = await runLoad({
    port: service.port,
    connections: CONNECTIONS,
    durationMs: SEED_MS_MAX,
    request: () => requestBytes('POST', '/v1/events/batch', { key, body: body() }),
    isDone: () => next >= count,
  })
  if (Object.keys(result.byStatus).some((status) => status !== '200')) {
    throw new Error(`seeding was refused: ${JSON.stringify(result.byStatus)}`)
  }
  process.stdout.write(`seeded ${next} events at ${Math.round(next / result.seconds)} a second\n`)
}
