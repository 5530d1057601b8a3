import type { paths } from '../../../api/schema.d.ts'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import rows from '../../../parts/table/DataTable.module.css'
import { formatCount } from '../../../parts/text/format.ts'
import { DataTable } from '../../../parts/table/DataTable.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { useZonedLabel } from '../../../parts/time/time-zone.ts'
import { useSession } from '../../../api/session-context.tsx'
import { useWebhooks } from '../../webhooks/webhooks.ts'
import { actorText, fieldOf } from './activity-actor.ts'
import { activityText } from './activity-text.ts'

type Event =
  paths['/dashboard/events']['get']['responses'][200]['content']['application/json']['data'][number]

export function ActivityTable({ events }: { events: readonly Event[] }) {
  const { session } = useSession()
  const time = useZonedLabel('Time')
  const { data: { webhooks } = { webhooks: [] } } = useWebhooks(null)
  const names = {
    workspace: (id: string) =>
      session.workspaces.find((workspace) => workspace.id === id)?.name ?? 'a workspace',
    // For a deleted webhook, only the id is known.
    webhook: (id: string) => webhooks.find((webhook) => webhook.id === id)?.url ?? id,
  }
  return (
    <DataTable
      label="Activity, newest first"
      columns={['Activity', time, 'IP address']}
      lastColumn="Event"
    >
      {events.map((event) => (
        <tr key={event.id}>
          <td>
            <span className={rows.name}>{actorText(event)}</span> {activityText(event, names)}
          </td>
          <td>
            <TimeText at={event.timestamp} style="clock" />
          </td>
          <td data-label="IP address">
            <span className="numeric">{fieldOf(event.metadata, 'address') ?? '–'}</span>
          </td>
          <td className={rows.actions}>
            <AnchorLink
              to="/app/explorer"
              search={{ workspaceId: event.workspaceId, event: event.id }}
              aria-label={`Show event ${event.seq} in Explorer`}
              className="numeric"
            >
              #{formatCount(event.seq)}
            </AnchorLink>
          </td>
        </tr>
      ))}
    </DataTable>
  )
}
