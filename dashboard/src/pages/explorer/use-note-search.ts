import { useEffect } from 'react'
import { noteRecentSearch } from '../../api/recent-searches.ts'
import { useSession } from '../../api/session-context.tsx'

/** The URL follows the typing. A text that stays this long is a search. */
const TYPED_MS = 1_000

/** Remembers what the member searched for, for the command palette. */
export function useNoteSearch(text: string | undefined): void {
  const userId = useSession().session.user.id
  useEffect(() => {
    if (text === undefined) return undefined
    const timer = setTimeout(() => noteRecentSearch(userId, text), TYPED_MS)
    return () => clearTimeout(timer)
  }, [userId, text])
}
