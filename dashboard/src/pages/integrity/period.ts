import { dayAt, dayStartMs } from '../../parts/time/calendar.ts'
import { formatLocal, zonedFormat } from '../../parts/time/time.ts'

export type Period = { from: string; to: string }

const MONTHS = 13

const monthName = zonedFormat({ month: 'long', year: 'numeric' })

/** A month in the displayed time zone. `back` is 0 for the current month. */
function monthAt(nowMs: number, back: number): Period & { label: string } {
  const { year, month } = dayAt(nowMs)
  const startOf = (months: number) => dayStartMs({ year, month: month - months, day: 1 })
  const [fromMs, toMs] = [startOf(back), startOf(back - 1)]
  return {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    label: monthName(fromMs),
  }
}

/** The current month and the twelve before it, newest first. */
export function recentMonths(nowMs: number): ReturnType<typeof monthAt>[] {
  return Array.from({ length: MONTHS }, (_, back) => monthAt(nowMs, back))
}

/** For example "March 2026", if the period is exactly that month in the displayed time zone. */
export function periodText({ from, to }: Period): string {
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)]
  const { year, month } = dayAt(fromMs)
  const isMonth =
    dayStartMs({ year, month, day: 1 }) === fromMs &&
    dayStartMs({ year, month: month + 1, day: 1 }) === toMs
  if (isMonth) return monthName(fromMs)
  return `${formatLocal(fromMs, 'clock')} to ${formatLocal(toMs, 'clock')}`
}

/** What a run verified. */
export function scopeText({ from, to }: { from: string | null; to: string | null }): string {
  return from === null || to === null ? 'Whole chain' : periodText({ from, to })
}
