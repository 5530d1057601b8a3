import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { bodyOf, type Draft, missingIn } from './draft.ts'
import { readPreflight } from './exports.ts'

/** Somebody who types is not done yet. */
const PAUSE_MS = 350

/** What the export would come to, asked anew whenever the form rests. */
export function usePreflight(draft: Draft) {
  const [rested] = useDebouncedValue(draft, PAUSE_MS)
  const body = bodyOf(rested)
  return useQuery({
    queryKey: ['exports', 'preflight', body],
    queryFn: () => readPreflight(body),
    enabled: missingIn(rested) === null,
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    gcTime: 30_000,
  })
}
