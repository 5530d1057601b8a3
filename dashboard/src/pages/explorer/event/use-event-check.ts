import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { reportEvent, useBrokenRuns } from '../../../api/broken-chains.ts'
import type { EventDetail } from '../event-queries.ts'
import type { ExplorerEvent } from '../explorer-event.ts'
import { canVerify, verifyEvent } from './verify-event.ts'

export type EventCheck = ReturnType<typeof useEventCheck>

/** Verifies the open event in the browser, against its own hash and its neighbors. */
export function useEventCheck(event: ExplorerEvent, detail: EventDetail | undefined) {
  const { data: check } = useQuery({
    queryKey: ['events', 'proof', event],
    queryFn: () => verifyEvent(event),
    enabled: canVerify(),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const isChecked = check !== undefined
  const differences = isChecked ? [...check.differences, ...chainMismatches(event, detail)] : []
  const isBroken = differences.length > 0
  const isFinal = isBroken || (isChecked && detail !== undefined)
  useEffect(() => {
    if (isFinal) reportEvent(event, isBroken)
  }, [event, isFinal, isBroken])
  const run = useBrokenRuns().find(({ badEventId }) => badEventId === event.id)
  return { isChecked, erased: check?.erased ?? [], differences, verdict: run?.verdict ?? null }
}

/** Mismatches that only the neighboring events can reveal. */
function chainMismatches(
  { prevHash, hash }: ExplorerEvent,
  detail: EventDetail | undefined,
): string[] {
  const found: string[] = []
  const { previous, next } = detail ?? {}
  if (previous && previous.hash !== prevHash)
    found.push('The hash of the previous event does not match.')
  if (next && next.prevHash !== hash) found.push('The next event follows a different hash.')
  return found
}
