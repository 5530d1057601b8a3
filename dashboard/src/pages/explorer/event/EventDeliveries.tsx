import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { DELIVERY_LABELS } from '../../webhooks/delivery/delivery-text.ts'
import classes from './EventPanel.module.css'
import type { ExplorerEvent } from '../explorer-event.ts'

const POLL_MS = 3_000

/** The webhook deliveries of the event. */
export function EventDeliveries({ event: { workspaceId, seq } }: { event: ExplorerEvent }) {
  const { data, error } = useQuery({
    queryKey: ['deliveries', 'event', workspaceId, seq],
    queryFn: async ({ signal }) => {
      const params = { query: { workspaceId, eventSeq: seq } }
      return (await unwrap(client.GET('/dashboard/deliveries', { params, signal }))).deliveries
    },
    // Polls until every delivery has succeeded or failed.
    refetchInterval: ({ state }) =>
      state.data?.some(({ status }) => status !== 'SUCCEEDED' && status !== 'FAILED')
        ? POLL_MS
        : false,
  })
  return (
    <section className={classes.section} aria-label="Deliveries">
      <h3 className={classes.heading}>Deliveries</h3>
      <ErrorBox error={error} />
      {data?.length === 0 && (
        <Text size="sm" className="soft">
          No webhook deliveries
        </Text>
      )}
      {data?.map(({ id, webhookId, status, url, attempt, failureReason }) => (
        <div className={classes.delivery} key={id}>
          <StatusText tone={DELIVERY_LABELS[status].tone}>
            {DELIVERY_LABELS[status].label}
          </StatusText>
          <AnchorLink
            to="/app/webhooks/$webhookId"
            params={{ webhookId }}
            search={{ delivery: id }}
            className="truncate"
            title={url}
          >
            {url}
          </AnchorLink>
          <span className="soft numeric">
            {attempt} {attempt === 1 ? 'attempt' : 'attempts'}
          </span>
          {failureReason !== null && <span className={classes.reason}>{failureReason}</span>}
        </div>
      ))}
    </section>
  )
}
