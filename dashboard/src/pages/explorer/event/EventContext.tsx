import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import { formatLocal } from '../../../parts/time/time.ts'
import { useTimeZone } from '../../../parts/time/time-zone.ts'
import type { ExplorerEvent } from '../explorer-event.ts'
import classes from './EventContext.module.css'
import panel from './EventPanel.module.css'
import { showInvisible } from '../../../parts/text/show-invisible.ts'

/** The events before and after the event in its chain, whatever the filters of the list are. */
export function EventContext({
  event: { workspaceId, seq },
  onOpen,
}: {
  event: ExplorerEvent
  onOpen: (id: string) => void
}) {
  useTimeZone()
  const { data, error } = useQuery({
    queryKey: ['events', 'context', workspaceId, seq],
    queryFn: async ({ signal }) => {
      const params = { query: { workspaceId, seq } }
      return (await unwrap(client.GET('/dashboard/events/context', { params, signal }))).events
    },
  })
  return (
    <section className={panel.section} aria-label="Before and after">
      <h3 className={panel.heading}>Before and after</h3>
      <ErrorBox error={error} />
      {data?.every((event) => event.seq !== seq) && (
        <p className="soft">This event is archived. Events that are archived are not shown here.</p>
      )}
      <ol className={classes.list}>
        {data?.map((event) => {
          const isOpen = event.seq === seq
          return (
            <li key={event.id}>
              <button
                type="button"
                className={classes.row}
                aria-current={isOpen || undefined}
                onClick={() => !isOpen && onOpen(event.id)}
              >
                <span className="soft numeric">{formatCount(event.seq)}</span>
                <span className="numeric">{formatLocal(Date.parse(event.timestamp), 'clock')}</span>
                <span className="truncate">
                  {showInvisible(event.action)}
                  <span className="soft"> {event.actorEmail ?? event.actorId ?? ''}</span>
                </span>
              </button>
            </li>
          )
        })}
      </ol>
    </section>
  )
}
