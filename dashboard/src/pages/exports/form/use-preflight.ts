import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { bodyOf, type Draft, missingIn } from './draft.ts'
import { readPreflight } from '../exports.ts'

/** The preflight runs after this pause in typing. */
const DEBOUNCE_MS = 350

/** The estimated size of the export, updated when the form stops changing. */
export function usePreflight(draft: Draft) {
  const [debounced] = useDebouncedValue(draft, DEBOUNCE_MS)
  const body = bodyOf(debounced)
  return useQuery({
    queryKey: ['exports', 'preflight', body],
    queryFn: () => readPreflight(body),
    enabled: missingIn(debounced) === null,
    placeholderData: keepPreviousData,
    staleTime: 10_000,
    gcTime: 30_000,
  })
}
