import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useSigned } from '../../shell/session-context.tsx'
import { ALL_WORKSPACES, patchSearch, type SearchPatch } from './explorer-search.ts'
import { type Filters, filtersOf } from './filters.ts'
import { windowOf } from './time-window.ts'

export type Explorer = ReturnType<typeof useExplorer>
export type Change = (patch: SearchPatch, options?: { replace?: boolean }) => void

/** What the address asks for, and the one way to change it. */
export function useExplorer() {
  const search = useSearch({ from: '/shell/app/explorer' })
  const change = useChange()
  useChosenWorkspace(search.workspaceId, change)
  const { workspace } = useSigned()
  const filters = useStable(filtersOf(search, workspace?.id ?? null))
  const [refreshes, setRefreshes] = useState(0)
  const { range, from, to } = search
  // A range that ends now is fixed while its pages are loaded, and moves on with a refresh.
  const { timeWindow, askedAt } = useMemo(() => {
    // Reading the clock here is the point: the number of refreshes says when to read it again.
    const nowMs = Date.now()
    const asked = { ...(range && { range }), ...(from && { from }), ...(to && { to }) }
    const timeWindow = windowOf(asked, nowMs)
    // To a time that is not over yet events are added: an answer of before is not the one of now.
    return { timeWindow, askedAt: timeWindow.toMs > nowMs ? nowMs : refreshes }
  }, [range, from, to, refreshes])
  const refresh = useCallback(() => setRefreshes((count) => count + 1), [])
  return useMemo(
    () => ({ search, filters, timeWindow, askedAt, refresh, change }),
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

/** The picker reads what it remembers only after it was drawn; that is nobody's choice of now. */
const SETTLE_MS = 100

/** The workspace stands in the address and in the picker above; whichever changes last is followed. */
function useChosenWorkspace(inAddress: string | undefined, change: Change): void {
  const { session, workspace, chooseWorkspace } = useSigned()
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
    chooseWorkspace(inAddress === ALL_WORKSPACES ? null : inAddress)
    return undefined
  }, [inAddress, session, chooseWorkspace, change])
  useEffect(() => {
    if (picked.current === chosen) return
    picked.current = chosen
    if (seen.current === chosen || (isNamed.current && !isSettled.current)) return
    seen.current = chosen
    if (isNamed.current) change({ workspaceId: chosen, ...OF_ONE_WORKSPACE })
  }, [chosen, change])
}

/** Neither a project nor an event is of another workspace; a view says which it is about. */
const OF_ONE_WORKSPACE: SearchPatch = { projectId: null, event: null, view: null }

/** The same object as long as it says the same, so that a queried list is not asked for again. */
function useStable(filters: Filters): Filters {
  const key = JSON.stringify(filters)
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- the key is the whole of it
  return useMemo(() => filters, [key])
}
