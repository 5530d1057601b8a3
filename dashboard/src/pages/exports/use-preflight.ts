import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { bodyOf, type Draft, missingIn } from './draft.ts'
import { readPreflight } from './exports.ts'

/** The preflight runs after this pause in typing. */
const PAUSE_MS = 350

/** The estimated size of the export, updated when the form stops changing. */
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
