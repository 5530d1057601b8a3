import { ActionIcon, Button, Group, Skeleton, VisuallyHidden } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { memo, useEffect, useRef } from 'react'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { BrokenEvent } from './BrokenEvent.tsx'
import { ChainSection } from './ChainSection.tsx'
import { actorPatch, type Names, resourcePatch, tracePatch } from '../list/columns.ts'
import { EventContext } from './EventContext.tsx'
import { EventDeliveries } from './EventDeliveries.tsx'
import { EventFields } from './EventFields.tsx'
import classes from './EventPanel.module.css'
import { isDangerous } from '../../../parts/action-tone.ts'
import { type EventDetail, useEventDetail } from '../event-queries.ts'
import { actorText, type ExplorerEvent } from '../explorer-event.ts'
import type { SearchPatch } from '../../../query/explorer-search.ts'
import { clearPatch } from '../../../query/filters.ts'
import { metadataText } from '../../../query/metadata.ts'
import { arrivedAroundPatch } from '../../../query/received.ts'
import { rangePatch } from '../../../query/time-window.ts'
import { MetadataTree } from './MetadataTree.tsx'
import { RawEvent } from './RawEvent.tsx'
import { useEventCheck } from './use-event-check.ts'
import type { Change } from '../use-explorer.ts'
import { showInvisible } from '../../../parts/text/show-invisible.ts'

type PanelProps = {
  eventId: string
  /** The event as listed, shown until its details have loaded. */
  listed: ExplorerEvent | undefined
  /** The list has it from the archive. */
  isArchived: boolean
  workspaceId: string | undefined
  names: Names
  mayExclude: boolean
  onClose: () => void
  onOpen: (id: string) => void
  change: Change
}

/** The details of an event, beside the list, which stays usable. */
export const EventPanel = memo(function EventPanel(props: PanelProps) {
  const { eventId, listed, isArchived, workspaceId, onClose } = props
  const detail = useEventDetail(eventId, listed?.workspaceId ?? workspaceId, !isArchived)
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => heading.current?.focus({ preventScroll: true }), [])
  const event = detail.data?.event ?? listed
  return (
    <aside className={classes.panel} aria-label="Event">
      <header className={classes.top}>
        <h2
          className={classes.title}
          ref={heading}
          tabIndex={-1}
          data-danger={isDangerous(event?.action ?? '') || undefined}
        >
          {showInvisible(event?.action ?? 'Event')}
        </h2>
        <CopyLink />
        <ActionIcon variant="subtle" color="gray" aria-label="Close event" onClick={onClose}>
          <Icon name="close" size={16} />
        </ActionIcon>
      </header>
      <VisuallyHidden role="status">
        {event &&
          `${event.action}, ${actorText(event) || 'no actor'}, sequence number ${event.seq}`}
      </VisuallyHidden>
      <div className={classes.content} tabIndex={0} role="group" aria-label="Event details">
        {!event && !detail.error && <Skeleton height={240} />}
        {!event && <ErrorBox error={detail.error} />}
        {!event && detail.error && (
          <p className="soft">
            The event may be archived, in which case a search of the archive finds it, or it may
            belong to a workspace you can’t access.
          </p>
        )}
        {event && <EventContent {...props} event={event} detail={detail.data} />}
      </div>
    </aside>
  )
})

type ContentProps = Pick<PanelProps, 'names' | 'mayExclude' | 'onOpen' | 'change'> & {
  event: ExplorerEvent
  /** Loads after the event. */
  detail: EventDetail | undefined
}

function EventContent({ event, detail, names, mayExclude, onOpen, change }: ContentProps) {
  const check = useEventCheck(event, detail)
  return (
    <>
      <BrokenEvent check={check} />
      <RelatedEvents event={event} change={change} />
      <EventFields event={event} names={names} mayExclude={mayExclude} onFilter={change} />
      <section className={classes.section} aria-label="Metadata">
        <h3 className={classes.heading}>Metadata</h3>
        {event.metadata === null ? (
          <p className="soft">{'metadata' in event.sealed ? 'Erased' : 'None'}</p>
        ) : (
          <MetadataTree
            value={event.metadata}
            key={event.id}
            onFilter={(filter) => change({ addMetadata: metadataText(filter) })}
          />
        )}
      </section>
      <ChainSection event={event} detail={detail} check={check} onOpen={onOpen} />
      <EventContext event={event} onOpen={onOpen} />
      <EventDeliveries event={event} />
      <RawEvent event={event} />
    </>
  )
}

function CopyLink() {
  const { copied, copy } = useClipboard({ timeout: 1_500 })
  return (
    <Button
      size="compact-xs"
      variant="subtle"
      onClick={() => copy(window.location.href)}
      leftSection={<Icon name={copied ? 'check' : 'link'} size={12} />}
    >
      {copied ? 'Copied' : 'Copy link'}
    </Button>
  )
}

/** Links to events with the same actor, resource or trace, or that arrived then, without the other filters. */
function RelatedEvents({ event, change }: { event: ExplorerEvent; change: Change }) {
  const choices: [string, SearchPatch | null][] = [
    ['Same actor', actorPatch(event)],
    ['Same resource', resourcePatch(event)],
    ['Same trace', tracePatch(event)],
    [
      'Around this time',
      { ...arrivedAroundPatch(Date.parse(event.receivedAt)), ...rangePatch('allTime') },
    ],
  ]
  return (
    <Group gap={6}>
      {choices.map(([label, patch]) => (
        <Button
          key={label}
          size="compact-xs"
          variant="default"
          disabled={patch === null}
          onClick={() => patch && change({ ...clearPatch(), ...patch })}
        >
          {label}
        </Button>
      ))}
    </Group>
  )
}
