import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useSession } from '../../api/session-context.tsx'
import { useTimeZone } from '../../parts/time/time-zone.ts'
import { useFirstTime } from './event-queries.ts'
import { ALL_WORKSPACES, patchSearch, type SearchPatch } from '../../query/explorer-search.ts'
import { type Filters, filtersOf } from '../../query/filters.ts'
import { readSort } from '../../query/received.ts'
import { useNoteSearch } from './use-note-search.ts'
import { windowOf } from '../../query/time-window.ts'

export type Explorer = ReturnType<typeof useExplorer>
export type Change = (patch: SearchPatch, options?: { replace?: boolean }) => void

/** The query in the URL, and the only function that changes it. */
export function useExplorer() {
  const search = useSearch({ from: '/shell/app/explorer' })
  const change = useChange()
  useChosenWorkspace(search.workspaceId, change)
  const { workspace } = useSession()
  const filters = useStable(filtersOf(search, workspace?.id ?? null))
  const [refreshes, setRefreshes] = useState(0)
  const { range, from, to } = search
  useNoteSearch(search.text)
  const timeZone = useTimeZone()
  const firstMs = useFirstTime(workspace?.id ?? null, range === 'allTime', refreshes)
  // A range that ends now is fixed while its pages load, and moves on a refresh.
  const { timeWindow, askedAt } = useMemo(() => {
    // Reads the clock on purpose: a refresh changes `refreshes`, so that the clock is read again.
    const nowMs = Date.now()
    const asked = { ...(range && { range }), ...(from && { from }), ...(to && { to }) }
    const timeWindow = windowOf(asked, nowMs, firstMs)
    // A window that includes the present still receives events, so cached responses must not be reused.
    return { timeWindow, askedAt: timeWindow.toMs > nowMs ? nowMs : refreshes }
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- days start at another time in another zone
  }, [range, from, to, refreshes, firstMs, timeZone])
  const refresh = useCallback(() => setRefreshes((count) => count + 1), [])
  return useMemo(
    () => ({ search, filters, timeWindow, sort: readSort(search.sort), askedAt, refresh, change }),
    [search, filters, timeWindow, askedAt, refresh, change],
  )
}

function useChange(): Change {
  const navigate = useNavigate()
  return useCallback<Change>(
    (patch, { replace = false } = {}) =>
      void navigate({
        to: '/app/explorer',
        search: (previous) => patchSearch(previous, patch),
        replace,
        resetScroll: false,
      }),
    [navigate],
  )
}

/**
 * Mantine reads the picker's stored value once more after the first render. Changes within this time
 * aren't the member's choice.
 */
const SETTLE_MS = 100

/** Keeps the workspace in the URL and in the picker equal. Whichever changed last wins. */
function useChosenWorkspace(inAddress: string | undefined, change: Change): void {
  const { session, workspace, selectWorkspace } = useSession()
  const chosen = workspace?.id ?? ALL_WORKSPACES
  const picked = useRef(chosen)
  const seen = useRef(chosen)
  const isNamed = useRef(false)
  const isSettled = useRef(false)
  useEffect(() => {
    const timer = setTimeout(() => (isSettled.current = true), SETTLE_MS)
    return () => clearTimeout(timer)
  }, [])
  useEffect(() => {
    isNamed.current = inAddress !== undefined
    if (inAddress === undefined) {
      const timer = setTimeout(() => change({ workspaceId: picked.current }, { replace: true }))
      return () => clearTimeout(timer)
    }
    const isOffered =
      inAddress === ALL_WORKSPACES ||
      session.workspaces.some(({ id, kind }) => id === inAddress && kind === 'CUSTOMER')
    if (!isOffered || inAddress === seen.current) return undefined
    seen.current = inAddress
    selectWorkspace(inAddress === ALL_WORKSPACES ? null : inAddress)
    return undefined
  }, [inAddress, session, selectWorkspace, change])
  useEffect(() => {
    if (picked.current === chosen) return
    picked.current = chosen
    if (seen.current === chosen || (isNamed.current && !isSettled.current)) return
    seen.current = chosen
    if (isNamed.current) change({ workspaceId: chosen, ...CLEARED_FIELDS })
  }, [chosen, change])
}

/** A project, an event and a view each belong to a workspace, so changing the workspace clears them. */
const CLEARED_FIELDS: SearchPatch = { projectId: null, event: null, view: null }

/** Returns the same object while its content is equal, so that queries aren't sent again. */
function useStable(filters: Filters): Filters {
  const key = JSON.stringify(filters)
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- the key contains every field
  return useMemo(() => filters, [key])
}
