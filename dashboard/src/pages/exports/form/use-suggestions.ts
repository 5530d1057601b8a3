import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import type { DraftField } from './draft.ts'

const DEBOUNCE_MS = 200
const SUGGESTIONS_MAX = 12
/** Longer text is truncated before the search. */
const CONTAINS_LENGTH_MAX = 200

/** The most common values of a field that contain the typed text. */
export function useSuggestions(
  field: DraftField,
  typed: string,
  workspaceId: string | null,
): string[] {
  const [contains] = useDebouncedValue(typed.trim().slice(0, CONTAINS_LENGTH_MAX), DEBOUNCE_MS)
  const isListed = field !== 'text' && field !== 'traceId' && field !== 'actorRole'
  const { data } = useQuery({
    queryKey: ['filter-options', field, workspaceId, contains],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/events/filter-options', {
          params: {
            query: {
              field: isListed ? field : 'category',
              limit: SUGGESTIONS_MAX,
              ...(contains !== '' && { contains }),
              ...(workspaceId !== null && { workspaceId }),
            },
          },
        }),
      ),
    enabled: isListed,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  })
  return data?.values.map(({ value }) => value) ?? []
}
