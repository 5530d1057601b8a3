import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { shorten } from '../../../parts/text/shorten.ts'

const NAMES_MAX = 50

/** Resolves project ids to names. A project without events isn't listed and is shown by its id. */
export function useProjectNames(isNeeded: boolean): (id: string) => string {
  const { data } = useQuery({
    queryKey: ['filter-options', 'projectId', 'names'],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/events/filter-options', {
          params: { query: { field: 'projectId', limit: NAMES_MAX } },
        }),
      ),
    enabled: isNeeded,
    staleTime: 60_000,
  })
  return (id) => data?.values.find(({ value }) => value === id)?.label ?? shorten(id)
}
