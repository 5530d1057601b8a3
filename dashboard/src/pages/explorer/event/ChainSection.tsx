import { Button, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { CopyableText } from '../../../parts/CopyableText.tsx'
import { formatCount } from '../../../parts/format.ts'
import { StatusText } from '../../../parts/StatusText.tsx'
import classes from './EventPanel.module.css'
import type { EventDetail } from '../event-queries.ts'
import type { ExplorerEvent } from '../explorer-event.ts'
import { canVerify, verifyEvent } from './verify-event.ts'

type ChainProps = {
  event: ExplorerEvent
  /** Loads after the event. */
  detail: EventDetail | undefined
  onOpen: (id: string) => void
}

/** The event's position in the chain, and its verification, which runs in the browser. */
export function ChainSection({ event, detail, onOpen }: ChainProps) {
  const { seq, hash, prevHash } = event
  const neighbors = [
    { label: 'Previous', neighbor: detail?.previous },
    { label: 'Next', neighbor: detail?.next },
  ]
  return (
    <section className={classes.section} aria-label="Chain">
      <h3 className={classes.heading}>Chain</h3>
      <dl className={classes.facts}>
        <dt>Sequence</dt>
        <dd className="numeric">
          {formatCount(seq)}
          {neighbors.map(
            ({ label, neighbor }) =>
              neighbor && (
                <Button
                  key={label}
                  size="compact-xs"
                  variant="subtle"
                  onClick={() => onOpen(neighbor.id)}
                >
                  {label}: {formatCount(neighbor.seq)}
                </Button>
              ),
          )}
        </dd>
        <dt>Hash</dt>
        <dd>
          <CopyableText text={prevHash} /> <span className="soft">→</span>{' '}
          <CopyableText text={hash} />
        </dd>
      </dl>
      <Verification event={event} detail={detail} />
    </section>
  )
}

function Verification({ event, detail }: Pick<ChainProps, 'event' | 'detail'>) {
  const { data: check } = useQuery({
    queryKey: ['events', 'proof', event],
    queryFn: () => verifyEvent(event),
    enabled: canVerify(),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (!canVerify()) {
    return (
      <Text size="sm" className="soft">
        This browser can compute hashes only on HTTPS pages and on localhost. To verify the event,
        export it.
      </Text>
    )
  }
  const differences = [...(check?.differences ?? []), ...chainMismatches(event, detail)]
  return (
    <div role="status" className={classes.proof}>
      {!check && <span className="soft">Verifying…</span>}
      {check && differences.length === 0 && (
        <>
          <StatusText tone="good">Verified</StatusText>
          <span className="soft">
            {verifiedText(detail)}
            {check.erased.length > 0 && ` Erased: ${check.erased.join(', ')}.`}
          </span>
        </>
      )}
      {check && differences.length > 0 && (
        <>
          <StatusText tone="bad">Verification failed</StatusText>
          <ul className={classes.differences}>
            {differences.map((difference) => (
              <li key={difference}>{difference}</li>
            ))}
          </ul>
        </>
      )}
    </div>
  )
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

function verifiedText(detail: EventDetail | undefined): string {
  const isBeside = detail?.previous || detail?.next
  const own = 'Your browser recomputed the hash of this event'
  return isBeside ? `${own}, and it matches the neighboring events.` : `${own}.`
}
