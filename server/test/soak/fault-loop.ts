import { FAULTS, type FaultKind, isRestart } from './faults.ts'
import { checkRecent, verifyLedger } from './ledger-check.ts'
import type { SeededRandom } from './seeded-random.ts'
import { pause, type SoakContext } from './soak-context.ts'

export type FaultRecord = {
  kind: FaultKind
  atSeconds: number
  /** The longest time without an accepted event. Null if the service did not recover. */
  outageMs: number | null
}

type FaultPlan = {
  kinds: readonly FaultKind[]
  random: SeededRandom
  durationMs: number
  calmMs: number
  onRecord: (record: FaultRecord) => void
}

const RECOVERY_MS_MAX = 60_000
/** After this share of the time, the service isn't restarted, so that its memory can be measured. */
const RESTARTS_UNTIL = 0.4
/** No fault starts after this share of the time. The load goes on until the last one has ended. */
const LAST_FAULT_AT = 0.9

/** Injects one fault after another, in an order determined by the seed, and checks after each. */
export async function injectFaults(
  soak: SoakContext,
  { kinds, random, durationMs, calmMs, onRecord }: FaultPlan,
): Promise<void> {
  const startedAtMs = performance.now()
  let queue: FaultKind[] = []
  for (;;) {
    await pause(soak, calmMs)
    const elapsed = (performance.now() - startedAtMs) / durationMs
    if (soak.stopping.aborted || elapsed > LAST_FAULT_AT) return
    const isAllowed = (kind: FaultKind) => elapsed < RESTARTS_UNTIL || !isRestart(kind)
    if (!queue.some(isAllowed)) queue = random.shuffled(kinds)
    const kind = queue.find(isAllowed)
    if (kind === undefined) return
    queue.splice(queue.indexOf(kind), 1)
    const atSeconds = Math.round((performance.now() - startedAtMs) / 1_000)
    onRecord({ kind, atSeconds, outageMs: await injectOne(soak, kind) })
  }
}

async function injectOne(soak: SoakContext, kind: FaultKind): Promise<number | null> {
  const { recovery, verdicts } = soak
  recovery.beginFault()
  try {
    await FAULTS[kind](soak)
  } catch (error) {
    verdicts.check('recovery', false, () => `${kind}: ${String(error)}`)
    // Restart the service as a supervisor would, because the checks need it running.
    if (!soak.service.isUp) await soak.service.start()
  }
  const hasRecovered = await isInTime(recovery.nextAcceptance())
  verdicts.check('recovery', hasRecovered, () => `no event was accepted after: ${kind}`)
  const outageMs = recovery.endFault()
  if (!hasRecovered) return null
  await checkRecent(soak, kind)
  await verifyLedger(soak, kind)
  return outageMs
}

async function isInTime(acceptance: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, RECOVERY_MS_MAX, false)
  })
  try {
    return await Promise.race([acceptance.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
