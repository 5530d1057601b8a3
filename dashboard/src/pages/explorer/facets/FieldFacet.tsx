import { Skeleton } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import {
  EXCLUSIONS_FULL_TEXT,
  exclusionText,
  VALUES_PER_FIELD_MAX,
} from '../../../query/exclusions.ts'
import { FIELD_LABELS, mayExclude } from '../../../query/filters.ts'
import { queryFilters } from '../../../query/metadata.ts'
import { type CountedField, othersText } from '../count-by.ts'
import { type EventsQuery, timesOf } from '../event-queries.ts'
import type { Change } from '../use-explorer.ts'
import classes from './FacetPanel.module.css'
import { FacetValue } from './FacetValue.tsx'

const TITLES: Record<CountedField, string> = {
  category: 'Categories',
  action: 'Actions',
  actorEmail: 'Actor emails',
  actorId: 'Actor IDs',
  resourceType: 'Resource types',
  resourceId: 'Resource IDs',
  projectId: 'Projects',
}

type FacetProps = {
  by: CountedField
  query: EventsQuery
  projectName: (id: string) => string
  change: Change
}

/** The most frequent values of a field. The counts are those of all events of the query. */
export function FieldFacet({ by, query, projectName, change }: FacetProps) {
  const { data, error, isPlaceholderData } = useFacet(query, by)
  const series = data?.series ?? []
  const values = series.flatMap(({ value, total }) => (value === null ? [] : [{ value, total }]))
  const others = series.find(({ value }) => value === null)?.total ?? 0
  if (data?.isGrouped && values.length === 0) return null
  const max = Math.max(...values.map(({ total }) => total))
  const { filters } = query
  const chosen = filters[by] ?? []
  return (
    <section aria-label={TITLES[by]} aria-busy={isPlaceholderData} className={classes.facet}>
      <h2 className={classes.title}>{TITLES[by]}</h2>
      <ErrorBox error={error} />
      {!data && !error && <Skeleton height={96} radius="sm" />}
      {data && !data.isGrouped && (
        <p className={`${classes.note} soft`}>
          Too many events to count. Choose a shorter period or add a filter.
        </p>
      )}
      <ul className={classes.values}>
        {values.map(({ value, total }) => {
          const name = by === 'projectId' ? projectName(value) : value
          const isChosen = chosen.includes(value) || chosen.length >= VALUES_PER_FIELD_MAX
          return (
            <FacetValue
              key={value}
              name={name}
              kind={FIELD_LABELS[by]}
              count={total}
              share={total / max}
              onFilter={
                isChosen ? null : () => change({ add: [exclusionText({ field: by, value })] })
              }
              exclude={{
                reason: mayExclude(filters) ? null : EXCLUSIONS_FULL_TEXT,
                run: () => change({ exclude: exclusionText({ field: by, value }) }),
              }}
            />
          )
        })}
      </ul>
      {data?.isGrouped && others > 0 && (
        <p className={`${classes.others} soft`}>
          <span>{othersText(by)}</span> <span className="numeric">{formatCount(others)}</span>
        </p>
      )}
    </section>
  )
}

function useFacet({ filters, timeWindow, askedAt }: EventsQuery, by: CountedField) {
  return useQuery({
    queryKey: ['events', 'facet', filters, timesOf(timeWindow), by, askedAt],
    queryFn: ({ signal }) => {
      const query = { ...timesOf(timeWindow), ...queryFilters(filters), by }
      return unwrap(
        client.GET('/dashboard/events/metrics/histogram', { params: { query }, signal }),
      )
    },
    placeholderData: keepPreviousData,
    gcTime: 60_000,
  })
}
