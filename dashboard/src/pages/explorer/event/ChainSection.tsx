import { Button, Text } from '@mantine/core'
import { CopyableText } from '../../../parts/text/CopyableText.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { Differences } from './BrokenEvent.tsx'
import classes from './EventPanel.module.css'
import type { EventDetail } from '../event-queries.ts'
import type { ExplorerEvent } from '../explorer-event.ts'
import type { EventCheck } from './use-event-check.ts'
import { canVerify } from './verify-event.ts'

type ChainProps = {
  event: ExplorerEvent
  /** Loads after the event. */
  detail: EventDetail | undefined
  check: EventCheck
  onOpen: (id: string) => void
}

/** The event's position in the chain, and its verification, which runs in the browser. */
export function ChainSection({ event, detail, check, onOpen }: ChainProps) {
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
      <Verification detail={detail} check={check} />
    </section>
  )
}

function Verification({ detail, check }: Pick<ChainProps, 'detail' | 'check'>) {
  if (!canVerify()) {
    return (
      <Text size="sm" className="soft">
        This browser can compute hashes only on HTTPS pages and on localhost. To verify the event,
        export it.
      </Text>
    )
  }
  const { isChecked, erased, differences } = check
  return (
    <div role="status" className={classes.proof}>
      {!isChecked && <span className="soft">Verifying…</span>}
      {isChecked && differences.length === 0 && (
        <>
          <StatusText tone="good">Verified</StatusText>
          <span className="soft">
            {verifiedText(detail)}
            {erased.length > 0 && ` Erased: ${erased.join(', ')}.`}
          </span>
        </>
      )}
      {differences.length > 0 && (
        <>
          <StatusText tone="bad">Verification failed</StatusText>
          <Differences texts={differences} />
        </>
      )}
    </div>
  )
}

function verifiedText(detail: EventDetail | undefined): string {
  const isBeside = detail?.previous || detail?.next
  const own = 'Your browser recomputed the hash of this event'
  return isBeside ? `${own}, and it matches the neighboring events.` : `${own}.`
}
