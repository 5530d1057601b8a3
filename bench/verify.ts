import { percentile } from './lib/http-load.ts'
import { postgresCpuUs } from './lib/processes.ts'
import { benchSeeded, round, type SeededService } from './lib/seeded-service.ts'
import { annals, postmasterPid, timesOf } from './lib/service.ts'

const DAYS = 30
const ROUNDS = 3
const THREADS = [1, 2]
const POLL_MS = 500

/** `npm run bench -- verify`: how fast `annals verify` is with one thread and with two. */
export async function benchVerify(): Promise<void> {
  await benchSeeded('verify', { days: DAYS }, async (seeded) => {
    await untilSigned(seeded)
    for (const threads of THREADS) measureVerify(seeded, threads)
  })
}

/** Signing the last events would take CPU time from the verification. */
async function untilSigned({ env, events }: SeededService): Promise<void> {
  for (;;) {
    const { events: found, signedWorkspaces }: { events: number; signedWorkspaces: number } =
      JSON.parse(annals(env, 'verify', '--json', '--parallel', '1'))
    if (found >= events && signedWorkspaces > 0) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** The whole command with its start, and PostgreSQL, which uses the same cores. */
function measureVerify({ env, dataDir, events, rows, ratios }: SeededService, threads: number) {
  const postmaster = postmasterPid(dataDir)
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = postgresCpuUs(postmaster)
    const times = timesOf(env, 'verify', '--parallel', String(threads))
    return { ...times, postgresSeconds: (postgresCpuUs(postmaster) - before) / 1e6 }
  })
  const median = (values: number[]) => percentile(values, 0.5)
  const seconds = median(rounds.map((each) => each.seconds))
  const nodeUs = (median(rounds.map((each) => each.cpuSeconds)) * 1e6) / events
  const postgresUs = (median(rounds.map((each) => each.postgresSeconds)) * 1e6) / events
  rows.push({ threads, seconds, eventsPerSecond: Math.round(events / seconds), nodeUs, postgresUs })
  const goal = threads === 2 ? ' (≥ 100,000)' : ''
  ratios[`events per second, threads: ${threads}${goal}`] = Math.round(events / seconds)
  ratios[`CPU µs per event, threads: ${threads}`] = round(nodeUs)
  ratios[`CPU µs of PostgreSQL per event, threads: ${threads}`] = round(postgresUs)
}
