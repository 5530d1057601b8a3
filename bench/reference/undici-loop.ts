import { type Dispatcher, Pool } from 'undici'
import { machineMs } from '../lib/machine-clock.ts'

/**
 * The baseline of sending: the bytes of one delivery in a loop, and nothing else. Uses `dispatch`, the
 * cheapest call of undici, because `request` creates a stream per response.
 */
const { TARGET = '', HEADERS = '{}', BODY = '', SECONDS = '2', CONCURRENCY = '64' } = process.env

const { origin, pathname } = new URL(TARGET)
const headers: Record<string, string> = JSON.parse(HEADERS)
const pool = new Pool(origin, { connections: Number(CONCURRENCY), pipelining: 1 })

await load(Number(SECONDS) / 2)
const cpuBefore = process.cpuUsage()
const { requests, seconds } = await load(Number(SECONDS))
const { user, system } = process.cpuUsage(cpuBefore)
await pool.close()
const result = { perSecond: requests / seconds, cpuUs: (user + system) / requests }
process.stdout.write(`${JSON.stringify(result)}\n`)

async function load(durationSeconds: number): Promise<{ requests: number; seconds: number }> {
  const startedAtMs = machineMs()
  const endsAtMs = startedAtMs + durationSeconds * 1_000
  let requests = 0
  await Promise.all(
    Array.from({ length: Number(CONCURRENCY) }, async () => {
      while (machineMs() < endsAtMs) {
        await send()
        requests += 1
      }
    }),
  )
  return { requests, seconds: (machineMs() - startedAtMs) / 1_000 }
}

function send(): Promise<void> {
  return new Promise((resolve, reject) => {
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => {},
      onResponseStart: () => {},
      onResponseData: () => {},
      onResponseEnd: () => resolve(),
      onResponseError: (_controller, error) => reject(error),
    }
    pool.dispatch({ method: 'POST', path: pathname, headers, body: BODY }, handler)
  })
}
