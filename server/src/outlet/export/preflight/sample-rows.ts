import type { SealedEvent } from '../../../ledger/event.ts'
import type { EventFilter } from '../../../ledger/filter/event-filter.ts'
import { readHotPage } from '../../../ledger/hot/hot-page-store.ts'
import type { Database } from '../../../platform/pg/database.ts'
import type { ExportRange } from '../job/export-job.ts'

/** A hot run, and how many of its rows an export would include. */
export type CountedRun = ExportRange & { rows: number }

const SAMPLES = 20
const ROWS_PER_SAMPLE = 5
const SAMPLE_ROWS_MAX = SAMPLES * ROWS_PER_SAMPLE
/** Takes samples in strides, so that the sample is spread out even if time runs out early. */
const STRIDE = 7
/** If few rows match, finding some is slow. At least one sample with rows is always read. */
const SAMPLE_MS_MAX = 1_000

/**
 * The average size of a row in bytes, from a sample of a hundred rows spread over the export: events change
 * over time, so the first rows say little about the last. Null if there are no rows to read.
 */
export async function measureRows(
  database: Database,
  runs: readonly CountedRun[],
  { filter, rowOf }: { filter: EventFilter; rowOf: (event: SealedEvent) => string },
): Promise<number | null> {
  const endsAtMs = performance.now() + SAMPLE_MS_MAX
  let bytes = 0
  let weight = 0
  for (const sample of samplePositions(runs)) {
    if (weight > 0 && performance.now() >= endsAtMs) break
    const { events } = await readHotPage(database, { ...sample, filter })
    if (events.length === 0) continue
    const found = events.reduce((sum, event) => sum + Buffer.byteLength(rowOf(event)), 0)
    bytes += (found / events.length) * sample.weight
    weight += sample.weight
  }
  return weight === 0 ? null : bytes / weight
}

/** Where to read and how many rows. The weight is how many rows the sample represents. */
type Sample = ExportRange & { limit: number; weight: number }

export function samplePositions(runs: readonly CountedRun[]): Sample[] {
  const rows = runs.reduce((sum, run) => sum + run.rows, 0)
  if (rows <= SAMPLE_ROWS_MAX) {
    return runs.map((run) => ({ ...run, limit: run.rows, weight: run.rows }))
  }
  return Array.from({ length: SAMPLES }, (_, index) => {
    const part = (index * STRIDE) % SAMPLES
    return sampleAt(runs, (rows * (part + 0.5)) / SAMPLES)
  }).flat()
}

/** The approximate position of the row with `rowsBefore` rows before it, as if matches were spread evenly. */
function sampleAt(runs: readonly CountedRun[], rowsBefore: number): Sample[] {
  let before = rowsBefore
  for (const run of runs) {
    if (before < run.rows) {
      const seqs = run.toSeq - run.fromSeq + 1
      const fromSeq = run.fromSeq + Math.floor((before / run.rows) * seqs)
      return [{ ...run, fromSeq, limit: ROWS_PER_SAMPLE, weight: 1 }]
    }
    before -= run.rows
  }
  return []
}
