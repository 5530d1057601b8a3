import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { ApiError } from './client.ts'
import { SESSION_KEY } from './session.ts'

/** When the session ends, every call fails with this code. The shell then shows the sign-in page. */
function handleSignedOut(error: Error): void {
  if (error instanceof ApiError && error.code === 'not_signed_in') {
    queryClient.setQueryData(SESSION_KEY, null)
  }
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: handleSignedOut }),
  mutationCache: new MutationCache({ onError: handleSignedOut }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // Retries network failures and 5xx responses. A refusal (4xx) would be refused again.
      retry: (count, error) =>
        count < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
  },
})

/**
 * Deletes all cached data. Sets the session to null instead of removing its query, because the shell
 * observes that query and wouldn't notice a new one in its place.
 */
export function forgetSession(): void {
  queryClient.setQueryData(SESSION_KEY, null)
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] })
  queryClient.getMutationCache().clear()
}
