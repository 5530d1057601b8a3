import { useEffect } from 'react'
import { reportEvent } from '../../../api/broken-chains.ts'
import type { ExplorerEvent } from '../explorer-event.ts'

/** Rows that leave the screen sooner, because the member scrolls, are skipped. Long enough for the first load. */
const SETTLE_MS = 700

const checked = new WeakSet<ExplorerEvent>()

/** Recomputes the hash of each row on the screen, once, and reports those that don't match. */
export function useRowChecks(rows: readonly ExplorerEvent[]): void {
  useEffect(() => {
    // A failed import is retried with the next rows.
    const timer = setTimeout(() => void checkRows(rows).catch(() => {}), SETTLE_MS)
    return () => clearTimeout(timer)
  }, [rows])
}

async function checkRows(rows: readonly ExplorerEvent[]): Promise<void> {
  // Not part of the first load.
  const { canVerify, verifyEvent } = await import('../event/verify-event.ts')
  if (!canVerify()) return
  for (const event of rows) {
    if (checked.has(event)) continue
    checked.add(event)
    const { differences } = await verifyEvent(event)
    if (differences.length > 0) reportEvent(event, true)
  }
}
