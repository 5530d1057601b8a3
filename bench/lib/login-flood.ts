import { requestBytes, runLoad } from './http-load.ts'
import { sampleEvent } from './sample-event.ts'
import { annals, startAnnals } from './service.ts'

const INGEST = { connections: 16, everyMs: 20 } as const
const FLOOD_CONNECTIONS = 100
const PASSWORD = 'not the password'

type FloodRow = {
  name: string
  perSecond: number
  p50Ms: number
  p99Ms: number
  refused: number
  loginsChecked: number
  loginsRefused: number
}

/**
 * Sends events at a steady rate, alone and beside a hundred connections that try passwords as fast as
 * they get responses. Throttling is off, as if the flood came from so many addresses that none exceeds
 * its limit.
 */
export async function measureLoginFlood({
  env,
  seconds,
}: {
  env: Record<string, string>
  seconds: number
}): Promise<FloodRow[]> {
  const { workspaces, user }: { workspaces: { workspaceKey: string }[]; user: { email: string } } =
    JSON.parse(annals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE'))
  const key = workspaces[0]?.workspaceKey ?? ''
  await using service = await startAnnals(env, 'api')
  const ingest = (durationMs: number) =>
    runLoad({
      port: service.port,
      ...INGEST,
      durationMs,
      request: (index, nth) => {
        const body = JSON.stringify(sampleEvent(index * 1_000_000 + nth))
        return requestBytes('POST', '/v1/events', { key, body })
      },
    })
  const flood = (durationMs: number) =>
    runLoad({
      port: service.port,
      connections: FLOOD_CONNECTIONS,
      durationMs,
      request: (index, nth) => {
        // Every second attempt uses an existing account.
        const email = nth % 2 === 0 ? user.email : `nobody-${index}-${nth}@example.com`
        const body = JSON.stringify({ email, password: PASSWORD })
        return requestBytes('POST', '/dashboard/session', { body })
      },
    })
  const measure = async (name: string, isFlooded: boolean): Promise<FloodRow> => {
    const durationMs = seconds * 1_000
    const logins = isFlooded ? flood(durationMs) : null
    const { perSecond, p50Ms, p99Ms, requests, byStatus } = await ingest(durationMs)
    const attempts = (await logins)?.byStatus ?? {}
    return {
      name,
      perSecond,
      p50Ms,
      p99Ms,
      refused: requests - (byStatus[201] ?? 0),
      loginsChecked: attempts[401] ?? 0,
      loginsRefused: attempts[503] ?? 0,
    }
  }
  await ingest(2_000)
  return [
    await measure('paced ingest', false),
    await measure('paced ingest, login flood', true),
    await measure('paced ingest again', false),
  ]
}
