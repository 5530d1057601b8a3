import { readClockOffset } from '../../platform/time/shared-clock.ts'
import { HOUR_MS } from '../../platform/time/time-units.ts'
import { type ArchiveDeps, ArchiveClockError } from './archive-deps.ts'

const OFFSET_MS_MAX = HOUR_MS

/**
 * Refuses to archive by the plans' hot times while the system clock and the database's clock differ by
 * more than an hour: a node whose clock is ahead would archive events that are still hot.
 */
export async function refuseWrongClock({
  database: { db },
}: Pick<ArchiveDeps, 'database'>): Promise<void> {
  const { offsetMs } = await readClockOffset(db)
  if (Math.abs(offsetMs) <= OFFSET_MS_MAX) return
  const side = offsetMs < 0 ? 'ahead of' : 'behind'
  throw new ArchiveClockError(
    `Nothing was archived, because this node's clock is ${durationText(Math.abs(offsetMs))} ${side} the database's. Correct the clocks, or choose a time with annals archive --before.`,
  )
}

function durationText(ms: number): string {
  const hours = ms / HOUR_MS
  return hours < 48 ? `${hours.toFixed(1)} hours` : `${Math.round(hours / 24)} days`
}
