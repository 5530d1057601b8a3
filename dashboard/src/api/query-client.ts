import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query'
import { ApiError } from './client.ts'
import { isLost, onReconnect } from './connection.ts'
import { forgetRecentSearches } from './recent-searches.ts'
import { noteDriftOfQuery } from './schema-drift.ts'
import { noteSignedIn, type Session, SESSION_KEY } from './session.ts'

/**
 * When the session ends, or the company requires a second factor that the member doesn't have, every call fails
 * with the same code. The shell then shows the page to sign in or to set it up.
 */
function handleLostAccess(error: Error): void {
  if (!(error instanceof ApiError)) return
  if (error.code === 'not_signed_in') queryClient.setQueryData(SESSION_KEY, null)
  if (error.code === 'second_factor_required') {
    void queryClient.invalidateQueries({ queryKey: SESSION_KEY })
  }
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: handleLostAccess, onSuccess: noteDriftOfQuery }),
  mutationCache: new MutationCache({ onError: handleLostAccess }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // Offline, a request fails like any other. By default, it would wait without a word.
      networkMode: 'always',
      // Retries network failures and 5xx responses. A refusal (4xx) would be refused again.
      retry: (count, error) =>
        count < 2 &&
        !isLost() &&
        (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
    mutations: { networkMode: 'always' },
  },
})

/** Starts with an empty cache, because another member may have used this tab before. */
export function startSession(session: Session): void {
  removeData()
  forgetRecentSearches(session.user.id)
  queryClient.setQueryData(SESSION_KEY, session)
}

// Refetching the explorer's list would load every page of it. The explorer reloads the first one instead.
onReconnect(
  () =>
    void queryClient.refetchQueries({
      type: 'active',
      predicate: (query) =>
        (query.state.status === 'error' || query.isStale()) && query.queryKey[1] !== 'pages',
    }),
)

/**
 * Deletes all cached data. Sets the session to null instead of removing its query, because the shell
 * observes that query and wouldn't notice a new one in its place.
 */
export function forgetSession(): void {
  noteSignedIn(false)
  queryClient.setQueryData(SESSION_KEY, null)
  removeData()
  forgetRecentSearches(null)
}

function removeData(): void {
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] })
  queryClient.getMutationCache().clear()
}
