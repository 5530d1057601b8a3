import type { EventFilter } from '../../ledger/event-filter.ts'
import { readHotPage } from '../../ledger/hot-page-store.ts'
import type { Database } from '../../platform/pg.ts'
import type { ExportFormat, ExportRange } from './export-job.ts'
import { csvRow } from './format-csv.ts'
import { jsonlRow } from './format-jsonl.ts'

/** A hot run, and how many rows of it an export would have. */
export type CountedRun = ExportRange & { rows: number }

const PLACES = 20
const ROWS_PER_PLACE = 5
const SAMPLE_ROWS_MAX = PLACES * ROWS_PER_PLACE
/** Places are visited in strides, so that those which time allows for are from all over as well. */
const STRIDE = 7
/** Where few rows match, finding some takes long. One place is looked at in any case. */
const SAMPLE_MS_MAX = 1_000

/**
 * The bytes of a row on average, by a hundred of them from all over the export: what a product sends
 * changes with time, so the first rows say little about the last. Null when there is none to read.
 */
export async function measureRows(
  database: Database,
  runs: readonly CountedRun[],
  { filter, format }: { filter: EventFilter; format: ExportFormat },
): Promise<number | null> {
  const rowOf = format === 'CSV' ? csvRow : jsonlRow
  const endsAtMs = performance.now() + SAMPLE_MS_MAX
  let bytes = 0
  let weight = 0
  for (const place of placesOf(runs)) {
    if (weight > 0 && performance.now() >= endsAtMs) break
    const { events } = await readHotPage(database, { ...place, filter })
    if (events.length === 0) continue
    const found = events.reduce((sum, event) => sum + Buffer.byteLength(rowOf(event)), 0)
    bytes += (found / events.length) * place.weight
    weight += place.weight
  }
  return weight === 0 ? null : bytes / weight
}

/** Where to read, how many rows, and for how many others they stand. */
type Place = ExportRange & { limit: number; weight: number }

export function placesOf(runs: readonly CountedRun[]): Place[] {
  const rows = runs.reduce((sum, run) => sum + run.rows, 0)
  if (rows <= SAMPLE_ROWS_MAX) {
    return runs.map((run) => ({ ...run, limit: run.rows, weight: run.rows }))
  }
  return Array.from({ length: PLACES }, (_, index) => {
    const part = (index * STRIDE) % PLACES
    return placeAt(runs, (rows * (part + 0.5)) / PLACES)
  }).flat()
}

/** About where the row stands that has so many before it: rows that match may lie anywhere in a run. */
function placeAt(runs: readonly CountedRun[], rowsBefore: number): Place[] {
  let before = rowsBefore
  for (const run of runs) {
    if (before < run.rows) {
      const seqs = run.toSeq - run.fromSeq + 1
      const fromSeq = run.fromSeq + Math.floor((before / run.rows) * seqs)
      return [{ ...run, fromSeq, limit: ROWS_PER_PLACE, weight: 1 }]
    }
    before -= run.rows
  }
  return []
}
