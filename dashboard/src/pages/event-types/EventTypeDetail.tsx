import { Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { DataTable } from '../../parts/table/DataTable.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { Icon } from '../../parts/Icon.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { TimeText } from '../../parts/time/TimeText.tsx'
import classes from './EventTypeDetail.module.css'
import { changeText, pathText, shareText } from './event-type-text.ts'
import { type EventType, type MetadataKey, type ShapeChange, useEventType } from './event-types.ts'
import { TypeFlags } from './TypeFlags.tsx'

const route = getRouteApi('/shell/app/event-types')

/** One type: what changed, and the keys of its metadata. */
export function EventTypeDetail({
  workspaceId,
  category,
  action,
}: {
  workspaceId: string
  category: string
  action: string
}) {
  const { data: type, error, isPending, refetch } = useEventType(workspaceId, category, action)
  const { flag } = route.useSearch()
  return (
    <>
      <AnchorLink to="/app/event-types" search={flag ? { flag } : {}}>
        All event types
      </AnchorLink>
      <PageHeader title={action} description={category}>
        <AnchorLink to="/app/explorer" search={{ workspaceId, category, action, range: '30d' }}>
          Show events in Explorer
        </AnchorLink>
      </PageHeader>
      <ErrorBox error={error} onRetry={refetch} />
      {isPending && <Skeleton height={240} />}
      {type === null && <Text size="sm">No event of this workspace has this type.</Text>}
      {type && <Detail type={type} workspaceId={workspaceId} />}
    </>
  )
}

function Detail({ type, workspaceId }: { type: EventType; workspaceId: string }) {
  const { count, firstSeenAt, lastSeenAt, flags, drift, metadataKeys } = type
  return (
    <Stack>
      <Group gap="lg">
        <Fact label="Events">{formatCount(count)}</Fact>
        <Fact label="First seen">
          <TimeText at={firstSeenAt} style="clock" />
        </Fact>
        <Fact label="Last seen">
          <TimeText at={lastSeenAt} style="clock" />
        </Fact>
        {flags.length > 0 && (
          <Fact label="Flags">
            <TypeFlags type={type} />
          </Fact>
        )}
      </Group>
      {drift.length > 0 && <Changes changes={drift} type={type} workspaceId={workspaceId} />}
      <div>
        <Title order={2} size="sm" mb={4}>
          Metadata keys
        </Title>
        {metadataKeys.length === 0 ? (
          <Text size="sm" className="soft">
            Events of this type have no metadata.
          </Text>
        ) : (
          <KeyTable keys={metadataKeys} count={count} />
        )}
        {type.truncated && (
          <Text size="xs" className="soft" mt="xs">
            Only the first 200 keys are listed. Keys longer than about 250 characters are left out.
          </Text>
        )}
      </div>
    </Stack>
  )
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Stack gap={0}>
      <Text size="xs" className="soft">
        {label}
      </Text>
      <Text size="sm" component="span" className="numeric">
        {children}
      </Text>
    </Stack>
  )
}

/** Each with a link to the event that showed it first. */
function Changes({
  changes,
  type: { metadataKeys },
  workspaceId,
}: {
  changes: readonly ShapeChange[]
  type: EventType
  workspaceId: string
}) {
  return (
    <section className={classes.changes} aria-labelledby="metadata-drift">
      <Title order={2} size="sm" id="metadata-drift" className={classes.title}>
        <Icon name="alert" size={14} /> Metadata drift
      </Title>
      <ul className={classes.list}>
        {changes.map((change) => (
          <li key={`${change.eventId} ${pathText(change.path)} ${change.type}`}>
            <span>
              <span className="mono">{pathText(change.path)}</span>{' '}
              {changeText(change, metadataKeys)}
            </span>
            <span className={classes.when}>
              <TimeText at={change.seenAt} style="clock" />{' '}
              <AnchorLink
                to="/app/explorer"
                search={{ workspaceId, event: change.eventId }}
                aria-label={`Show event that first had ${pathText(change.path)} as ${change.type}`}
              >
                Show event
              </AnchorLink>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function KeyTable({ keys, count }: { keys: readonly MetadataKey[]; count: number }) {
  return (
    <DataTable
      label="Metadata keys"
      columns={['Key', 'JSON types', 'Present in', 'First seen']}
      lastColumn="Last seen"
      className={classes.keys}
    >
      {keys.map((key) => (
        <tr key={JSON.stringify(key.path)}>
          <td className={classes.key}>
            <span className="mono">{pathText(key.path)}</span>
          </td>
          <td>{key.types.join(', ')}</td>
          <td className="numeric">{shareText(key.count, count)}</td>
          <td data-label="First seen">
            <TimeText at={key.firstSeenAt} style="day" />
          </td>
          <td data-label="Last seen">
            <TimeText at={key.lastSeenAt} style="day" />
          </td>
        </tr>
      ))}
    </DataTable>
  )
}
