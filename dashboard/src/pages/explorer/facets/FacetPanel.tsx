import { useMemo } from 'react'
import { canFilter, metadataText } from '../../../query/metadata.ts'
import { formatCount } from '../../../parts/text/format.ts'
import type { CountedField } from '../count-by.ts'
import type { EventsQuery } from '../event-queries.ts'
import type { ExplorerEvent } from '../explorer-event.ts'
import type { Change } from '../use-explorer.ts'
import { FacetValue } from './FacetValue.tsx'
import { FieldFacet } from './FieldFacet.tsx'
import classes from './FacetPanel.module.css'
import { countMetadataKeys } from './metadata-keys.ts'

const FIELDS: readonly CountedField[] = [
  'action',
  'actorEmail',
  'actorId',
  'resourceType',
  'resourceId',
  'projectId',
]
const KEYS_MAX = 8

type PanelProps = {
  query: EventsQuery
  isLive: boolean
  /** The events that the list has loaded. */
  events: readonly ExplorerEvent[]
  projectName: (id: string) => string
  change: Change
}

/** The most frequent values among the events of the query. One click filters by a value or excludes it. */
export function FacetPanel({ query, isLive, events, projectName, change }: PanelProps) {
  return (
    <aside className={classes.panel} aria-label="Facets">
      {isLive ? (
        <p className="soft">Turn off Live to count the values of all events in the period.</p>
      ) : (
        FIELDS.map((by) => (
          <FieldFacet key={by} by={by} query={query} projectName={projectName} change={change} />
        ))
      )}
      <MetadataKeys events={events} change={change} />
    </aside>
  )
}

/** No index has the keys of the metadata, so these are those of the events that the browser has. */
function MetadataKeys({ events, change }: Pick<PanelProps, 'events' | 'change'>) {
  const keys = useMemo(() => countMetadataKeys(events, KEYS_MAX), [events])
  if (keys.length === 0) return null
  const max = Math.max(...keys.map(({ total }) => total))
  return (
    <section aria-label="Metadata keys">
      <h2 className={classes.title}>Metadata keys</h2>
      <p className={`${classes.note} soft`}>
        In the {formatCount(events.length)} events loaded so far
      </p>
      <ul className={classes.values}>
        {keys.map(({ value, total }) => (
          <FacetValue
            key={value}
            name={value}
            kind="metadata key"
            count={total}
            share={total / max}
            onFilter={
              canFilter(value, '')
                ? () => change({ addMetadata: metadataText({ path: value, value: null }) })
                : null
            }
          />
        ))}
      </ul>
    </section>
  )
}
