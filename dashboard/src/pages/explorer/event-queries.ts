import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { ApiError, client, unwrap } from '../../api/client.ts'
import type { paths } from '../../api/schema.d.ts'
import { rememberColors } from '../../parts/chart/name-color.ts'
import { useTimeZone } from '../../parts/time/time-zone.ts'
import { type EventPage, type ExplorerEvent, hotTimeOf } from './explorer-event.ts'
import type { Filters } from '../../query/filters.ts'
import { queryFilters } from '../../query/metadata.ts'
import type { TimeWindow } from '../../query/time-window.ts'
import type { Sort } from '../../query/received.ts'
import type { CountBy } from './count-by.ts'
import { usePageSize } from './list/use-page-size.ts'

type ReadHistogram =
  paths['/dashboard/events/metrics/histogram']['get']['responses'][200]['content']['application/json']
type ReadSeries = ReadHistogram['series'][number]
/** `label` is what to show for the value, if not the value itself. */
export type Histogram = Omit<ReadHistogram, 'series'> & {
  series: (ReadSeries & { label?: string })[]
}

/** A browser handles this many events easily. To see more, narrow the period. */
export const LOADED_EVENTS_MAX = 50_000
/** Pages are numerous and large, so those of earlier queries are evicted soon. */
const CACHE_MS = 60_000

/** `askedAt` distinguishes refreshes of the same query. */
export type EventsQuery = { filters: Filters; timeWindow: TimeWindow; askedAt: number }

/** The matching events, the last ones first, loaded page by page. */
export function useEventPages({
  filters,
  timeWindow,
  askedAt,
  sort,
}: EventsQuery & { sort: Sort }) {
  const times = timesOf(timeWindow)
  const { pageSize: limit } = usePageSize()
  const pages = useInfiniteQuery({
    queryKey: ['events', 'pages', filters, times, askedAt, limit, sort],
    queryFn: async ({ pageParam, signal }) => {
      let cursor = pageParam
      for (;;) {
        const query = {
          limit,
          sort,
          ...(cursor !== null && { cursor }),
          ...times,
          ...queryFilters(filters),
        }
        const page: EventPage = await unwrap(
          client.GET('/dashboard/events', { params: { query }, signal }),
        )
        // A search with several filters can return an empty page before it finds a match.
        if (page.data.length > 0 || page.nextCursor === null) return page
        cursor = page.nextCursor
      }
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }, all) =>
      all.reduce((sum, { data }) => sum + data.length, 0) >= LOADED_EVENTS_MAX ? null : nextCursor,
    placeholderData: keepPreviousData,
    // A refetch would reload every page. A refresh starts with the first page instead.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: CACHE_MS,
    structuralSharing: false,
  })
  const loaded = useMemo(() => pages.data?.pages.flatMap(({ data }) => data) ?? [], [pages.data])
  const first = pages.data?.pages[0]
  const hotTime = useMemo(() => (first ? hotTimeOf(first) : null), [first])
  return { pages, loaded, hotTime }
}

/** When the first event happened, for "All time". Null if it isn't known (yet). */
export function useFirstTime(
  workspaceId: string | null,
  isEnabled: boolean,
  refreshes: number,
): number | null {
  const { data } = useQuery({
    queryKey: ['events', 'first-time', workspaceId, refreshes],
    queryFn: async () => {
      const params = { query: workspaceId === null ? {} : { workspaceId } }
      return (await unwrap(client.GET('/dashboard/events/first-time', { params }))).timestamp
    },
    enabled: isEnabled,
    placeholderData: keepPreviousData,
  })
  return isEnabled && data ? Date.parse(data) : null
}

export function useHistogram({ filters, timeWindow, askedAt }: EventsQuery, by: CountBy) {
  const zone = useTimeZone()
  return useQuery({
    queryKey: ['events', 'histogram', filters, timesOf(timeWindow), by, askedAt, zone],
    queryFn: async ({ signal }) => {
      const read = (timeZone: string) => {
        const query = { ...timesOf(timeWindow), ...queryFilters(filters), by, timeZone }
        return unwrap(
          client.GET('/dashboard/events/metrics/histogram', { params: { query }, signal }),
        )
      }
      const histogram = await read(zone).catch((error: unknown) => {
        if (isZoneUnknown(error)) return read('UTC')
        throw error
      })
      rememberColors(histogram.series.flatMap(({ value }) => value ?? []))
      return histogram
    },
    placeholderData: keepPreviousData,
    gcTime: CACHE_MS,
  })
}

/** The time zones of the browser can be newer than those of the service. */
function isZoneUnknown(error: unknown): boolean {
  return error instanceof ApiError && error.details.some(({ path }) => path === 'timeZone')
}

/** Counts the events that match the filters. */
export async function countEvents(filters: Filters, timeWindow: TimeWindow): Promise<number> {
  const query = { ...timesOf(timeWindow), ...queryFilters(filters), by: 'none' as const }
  const { total } = await unwrap(
    client.GET('/dashboard/events/metrics/histogram', { params: { query } }),
  )
  return total
}

export type EventDetail = {
  event: ExplorerEvent
  previous: Neighbor | null
  next: Neighbor | null
}
type Neighbor = { id: string; seq: number; hash: string; prevHash: string }

export function useEventDetail(
  eventId: string,
  workspaceId: string | undefined,
  isEnabled: boolean,
) {
  return useQuery({
    enabled: isEnabled,
    queryKey: ['events', 'one', eventId, workspaceId ?? null],
    queryFn: async ({ signal }) => {
      const query = workspaceId === undefined ? {} : { workspaceId }
      const params = { path: { eventId }, query }
      const detail: EventDetail = await unwrap(
        client.GET('/dashboard/events/{eventId}', { params, signal }),
      )
      return detail
    },
  })
}

/** Resolves project ids to names. Only projects with events have a name here. */
export function useProjectNames(workspaceId: string | undefined): (id: string) => string {
  const { data } = useQuery({
    queryKey: ['filter-options', 'projectId', workspaceId ?? null],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/events/filter-options', {
          params: {
            query: { field: 'projectId', limit: 50, ...(workspaceId && { workspaceId }) },
          },
        }),
      ),
    staleTime: 60_000,
  })
  return useMemo(() => {
    const names = new Map(data?.values.map(({ value, label }) => [value, label ?? value]))
    return (id: string) => names.get(id) ?? id
  }, [data])
}

export function timesOf({ fromMs, toMs }: TimeWindow): { from: string; to: string } {
  return { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }
}
