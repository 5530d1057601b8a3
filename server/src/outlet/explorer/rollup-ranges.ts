import { ROLLUP_GRAINS_S } from '../../ledger/rollup/rollup-store.ts'

export type TimeRange = { fromMs: number; toMs: number }
type CellRange = TimeRange & { grainS: number }

/** A range as whole buckets of the roll-up and the parts to count event by event. */
export type SplitRange = { cells: CellRange[]; live: TimeRange[] }

/**
 * Splits a range into the largest buckets that fit entirely into it and the rest at both ends. With a step,
 * only uses bucket sizes that divide it. If none does, all of the range is counted event by event.
 */
export function splitRange({ fromMs, toMs }: TimeRange, stepS: number | null): SplitRange {
  const fitting = ROLLUP_GRAINS_S.filter((grainS) => stepS === null || stepS % grainS === 0)
  let inner: TimeRange | null = null
  const cells: CellRange[] = []
  for (const grainS of fitting.toReversed()) {
    const whole = wholeBuckets({ fromMs, toMs }, grainS * 1_000)
    if (!whole) continue
    if (!inner) cells.push({ grainS, ...whole })
    else {
      cells.push({ grainS, fromMs: whole.fromMs, toMs: inner.fromMs })
      cells.push({ grainS, fromMs: inner.toMs, toMs: whole.toMs })
    }
    inner = whole
  }
  const live = inner
    ? [
        { fromMs, toMs: inner.fromMs },
        { fromMs: inner.toMs, toMs },
      ]
    : [{ fromMs, toMs }]
  return { cells: cells.filter(isSome), live: live.filter(isSome) }
}

function wholeBuckets({ fromMs, toMs }: TimeRange, grainMs: number): TimeRange | null {
  const whole = {
    fromMs: Math.ceil(fromMs / grainMs) * grainMs,
    toMs: Math.floor(toMs / grainMs) * grainMs,
  }
  return isSome(whole) ? whole : null
}

function isSome({ fromMs, toMs }: TimeRange): boolean {
  return fromMs < toMs
}
