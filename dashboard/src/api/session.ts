import { useQuery } from '@tanstack/react-query'
import { ApiError, client, unwrap } from './client.ts'
import type { paths } from './schema.d.ts'

export type Session = NonNullable<
  paths['/dashboard/session']['get']['responses'][200]['content']['application/json']
>
export type Permission = Session['permissions'][number]
export type Workspace = Session['workspaces'][number]

export const SESSION_KEY = ['session'] as const

/** The signed-in member. Null if signed out. */
export const SESSION_QUERY = { queryKey: SESSION_KEY, queryFn: readSession, staleTime: 60_000 }

export function useSessionQuery() {
  return useQuery(SESSION_QUERY)
}

/**
 * Set while this tab has a session, so that the sign-in page can say that it ended, even after a reload.
 * Signing out clears it.
 */
const SIGNED_IN_KEY = 'annals.signedIn'

export function noteSignedIn(isSignedIn: boolean): void {
  if (isSignedIn) sessionStorage.setItem(SIGNED_IN_KEY, '1')
  else sessionStorage.removeItem(SIGNED_IN_KEY)
}

/** For the sign-in page: true if the session ended on its own, false if the member signed out. */
export function hasSessionEnded(): boolean {
  return sessionStorage.getItem(SIGNED_IN_KEY) !== null
}

async function readSession(): Promise<Session | null> {
  try {
    return await unwrap(client.GET('/dashboard/session'))
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_signed_in') return null
    throw error
  }
}
