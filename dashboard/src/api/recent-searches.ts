import { parseJson } from '../../../sdk/src/client/parse-json.ts'

/** The newest searches of a member, kept in this browser until they sign out. */
const PREFIX = 'annals.recent-searches.'
const SEARCHES_MAX = 8
const LENGTH_MAX = 200

export function readRecentSearches(userId: string): string[] {
  try {
    const stored: unknown = parseJson(localStorage.getItem(PREFIX + userId) ?? '[]')
    return Array.isArray(stored) ? stored.filter((text) => typeof text === 'string') : []
  } catch {
    return [] // Storage is blocked, or it contains something else.
  }
}

export function noteRecentSearch(userId: string, text: string): void {
  if (text.length > LENGTH_MAX) return
  const others = readRecentSearches(userId).filter((other) => other !== text)
  try {
    const kept = [text, ...others].slice(0, SEARCHES_MAX)
    localStorage.setItem(PREFIX + userId, JSON.stringify(kept))
  } catch {
    // Storage is blocked or full.
  }
}

/** Deletes the searches of all other members. */
export function forgetRecentSearches(exceptUserId: string | null): void {
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(PREFIX) && key !== PREFIX + exceptUserId) localStorage.removeItem(key)
    }
  } catch {
    // Storage is blocked, so there are none.
  }
}
