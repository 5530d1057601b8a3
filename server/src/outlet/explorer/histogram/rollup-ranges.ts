import { ROLLUP_GRAINS_S } from '../../../ledger/rollup/rollup-store.ts'

export type TimeRange = { fromMs: number; toMs: number }
type CellRange = TimeRange & { grainS: number }

/** A range as whole buckets of the roll-up and the parts to count event by event. */
export type SplitRange = { cells: CellRange[]; live: TimeRange[] }

/**
 * Splits a range into the largest buckets that fit entirely into it and the rest at both ends. With bars,
 * no bucket extends over two of them. If the smallest buckets would, all of the range is counted event by
 * event.
 */
export function splitRange(range: TimeRange, bars: readonly number[] | null): SplitRange {
  const { fromMs, toMs } = range
  const starts = (bars ?? []).filter((startMs) => startMs > fromMs && startMs < toMs)
  const grainMs = ROLLUP_GRAINS_S[0] * 1_000
  if (starts.some((startMs) => startMs % grainMs !== 0)) return { cells: [], live: [range] }
  const parts = [fromMs, ...starts].map((startMs, index) =>
    splitBar({ fromMs: startMs, toMs: starts[index] ?? toMs }),
  )
  return {
    cells: joinAdjacent(parts.flatMap(({ cells }) => cells)),
    live: parts.flatMap(({ live }) => live),
  }
}

function splitBar({ fromMs, toMs }: TimeRange): SplitRange {
  let inner: TimeRange | null = null
  const cells: CellRange[] = []
  for (const grainS of ROLLUP_GRAINS_S.toReversed()) {
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

function joinAdjacent(cells: readonly CellRange[]): CellRange[] {
  const joined: CellRange[] = []
  for (const cell of cells.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const last = joined.at(-1)
    if (last?.toMs === cell.fromMs && last.grainS === cell.grainS) last.toMs = cell.toMs
    else joined.push({ ...cell })
  }
  return joined
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
