import { pause, type SoakContext } from './soak-context.ts'

const DAY_MS = 86_400_000
const RECENT_MS = 20_000

/** Runs `annals archive` alongside the service, as an operator or a timer would. */
export async function runArchiver(soak: SoakContext, everyMs: number): Promise<void> {
  while (!soak.stopping.aborted) {
    await pause(soak, everyMs)
    if (soak.stopping.aborted) return
    await archiveOnce(soak, archiveBefore(soak))
  }
}

/** Most runs leave the latest events in the database; some archive all that webhooks have read. */
export function archiveBefore({ random }: Pick<SoakContext, 'random'>): string {
  return random.chance(0.3) ? tomorrow() : new Date(Date.now() - RECENT_MS).toISOString()
}

/** Later than every event, even those from a clock that was set ahead. */
export function tomorrow(): string {
  return new Date(Date.now() + DAY_MS).toISOString()
}

/** A fault can end the command. Its exit code must then say so, and no event may be lost. */
export async function archiveOnce(
  { recovery, service, tally, verdicts }: SoakContext,
  before: string,
): Promise<void> {
  const faultsBefore = recovery.faultCount
  const wasFault = recovery.isFaultActive
  const { code, stdout, stderr } = await service.run('archive', '--before', before)
  const events = Number(/^Archived (\d+) events/m.exec(stdout)?.[1] ?? 0)
  tally.count('archive', 'events', events)
  const isDisturbed = wasFault || recovery.faultCount > faultsBefore
  tally.count('archive', code === 0 ? 'run' : isDisturbed ? 'run, disturbed' : 'run, failed')
  const describe = () => `exit code ${code}: ${stdout.trim()} ${stderr.trim()}`
  verdicts.check('archive', code === 0 || (isDisturbed && code === 1), describe)
}
