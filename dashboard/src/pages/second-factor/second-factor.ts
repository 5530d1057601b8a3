import { useQuery } from '@tanstack/react-query'
import { ApiError, client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'

const SECOND_FACTOR_KEY = ['second-factor'] as const

export function useSecondFactor() {
  return useQuery({
    queryKey: SECOND_FACTOR_KEY,
    queryFn: () => unwrap(client.GET('/dashboard/second-factor')),
  })
}

/** Setting it up also ends sessions, and the list of members shows it. */
export async function refreshSecondFactor(): Promise<void> {
  await Promise.all(
    [SECOND_FACTOR_KEY, ['sessions'], ['members']].map((queryKey) =>
      queryClient.invalidateQueries({ queryKey }),
    ),
  )
}

/** What is wrong with a field of the form, or null. */
export function fieldError(error: Error | null, path: '/currentPassword' | '/code'): string | null {
  if (!(error instanceof ApiError)) return null
  const detail = error.details.find((known) => known.path === path)
  return detail === undefined ? null : error.message
}

/** Whether the error belongs to no field. */
export function isFormError(error: Error | null): boolean {
  return fieldError(error, '/currentPassword') === null && fieldError(error, '/code') === null
}
