import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { archiveBefore } from './archive-load.ts'
import type { SoakContext } from './soak-context.ts'

const HOUR_MS = 3_600_000
const SHUTDOWN_MS_MAX = 10_000
const HOLD_MS = { stop: 3_000, full: 6_000, clock: 4_000, slow: 5_000 } as const
/** A time at which the command is at work. */
const ARCHIVER_LIFE_MS_MAX = 2_500

/** Each fault breaks something for a while and returns when it is repaired. */
export const FAULTS = {
  'kill the service': async ({ service }) => {
    await service.kill()
    await service.start()
  },
  'kill PostgreSQL': async ({ service }) => {
    process.kill(service.folder.postmasterPid(), 'SIGKILL')
  },
  'kill both': async ({ service }) => {
    process.kill(service.folder.postmasterPid(), 'SIGKILL')
    await service.kill()
    await service.start()
  },
  'restart the service': async (soak) => {
    await terminate(soak)
    await soak.service.start()
  },
  'pause the service': async ({ service }) => {
    service.signal('SIGSTOP')
    await delay(HOLD_MS.stop)
    service.signal('SIGCONT')
  },
  'pause PostgreSQL': async ({ service }) => {
    const pids = service.folder.postgresPids()
    signalAll(pids, 'SIGSTOP')
    await delay(HOLD_MS.stop)
    signalAll(pids, 'SIGCONT')
  },
  'fill the disk': async ({ service }) => {
    await service.folder.fill()
    await delay(HOLD_MS.full)
    await service.folder.makeRoom()
  },
  'step the clock ahead': (soak) => stepClock(soak, HOUR_MS),
  'step the clock back': (soak) => stepClock(soak, -HOUR_MS),
  'slow all receivers': async ({ receivers }) => {
    receivers.mode = 'stalled'
    await delay(HOLD_MS.slow)
    receivers.mode = 'normal'
  },
  'cut client connections': async ({ http }) => {
    http.cutAll()
  },
  'cut database connections': async ({ service }) => {
    await service.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    )
  },
  'kill the archiver': async (soak) => {
    const archiver = soak.service.spawnCommand(['archive', '--before', archiveBefore(soak)])
    archiver.stdout.resume()
    archiver.stderr.resume()
    const exited = once(archiver, 'exit')
    await delay(soak.random.below(ARCHIVER_LIFE_MS_MAX))
    archiver.kill('SIGKILL')
    await exited
  },
} satisfies Record<string, (soak: SoakContext) => Promise<void>>

export type FaultKind = keyof typeof FAULTS

/** Faults that start a new process, whose memory can't be compared with the previous one. */
const RESTARTS: ReadonlySet<FaultKind> = new Set([
  'kill the service',
  'kill both',
  'restart the service',
])

export function isFaultKind(name: string): name is FaultKind {
  return Object.hasOwn(FAULTS, name)
}

export const FAULT_KINDS: readonly FaultKind[] = Object.keys(FAULTS).filter(isFaultKind)

export function isRestart(kind: FaultKind): boolean {
  return RESTARTS.has(kind)
}

/** SIGTERM must lead to exit code 0 in time, whenever it is sent. */
export async function terminate({ service, verdicts }: SoakContext): Promise<void> {
  const { code, durationMs } = await service.terminate()
  const isClean = code === 0 && durationMs <= SHUTDOWN_MS_MAX
  verdicts.check('shutdown', isClean, () => `code ${code} after ${Math.round(durationMs)} ms`)
}

async function stepClock({ service }: SoakContext, offsetMs: number): Promise<void> {
  await service.stepClock(offsetMs)
  await delay(HOLD_MS.clock)
  await service.stepClock(0)
}

function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch {
      // A backend that has just ended.
    }
  }
}
