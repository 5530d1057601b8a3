import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { ApiError } from './client.ts'
import { SESSION_KEY } from './session.ts'

/** Once the session is over every call says so; the shell then shows the sign-in page. */
function noteSignedOut(error: Error): void {
  if (error instanceof ApiError && error.code === 'not_signed_in') {
    queryClient.setQueryData(SESSION_KEY, null)
  }
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteSignedOut }),
  mutationCache: new MutationCache({ onError: noteSignedOut }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // A refusal stays one; what failed on the way is tried again.
      retry: (count, error) =>
        count < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
  },
})

/**
 * Nothing of what was seen stays behind. The session is set before the rest goes: the shell listens to
 * that query, and would hear nothing of a new one in its place.
 */
export function forgetSession(): void {
  queryClient.setQueryData(SESSION_KEY, null)
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] })
  queryClient.getMutationCache().clear()
}
