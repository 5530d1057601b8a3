import { useEffect } from 'react'
import { queryClient } from '../../api/query-client.ts'
import { noteRecentSearch } from '../../api/recent-searches.ts'
import { SESSION_KEY, type Session } from '../../api/session.ts'
import { useSession } from '../../api/session-context.tsx'

/** The URL follows the typing. A text that stays this long is a search. */
const TYPED_MS = 1_000

/** Remembers what the member searched for, for the command palette. */
export function useNoteSearch(text: string | undefined): void {
  const userId = useSession().session.user.id
  useEffect(() => {
    if (text === undefined) return undefined
    const note = () => {
      // Signing out deletes the searches shortly before this page unmounts. Don't add one after that.
      const session = queryClient.getQueryData<Session | null>(SESSION_KEY)
      if (session?.user.id === userId) noteRecentSearch(userId, text)
    }
    const timer = setTimeout(note, TYPED_MS)
    return () => clearTimeout(timer)
  }, [userId, text])
}
