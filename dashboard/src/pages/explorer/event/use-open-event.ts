import { type RefObject, useCallback, useMemo } from 'react'
import type { ExplorerEvent } from '../explorer-event.ts'
import type { Change } from '../use-explorer.ts'
import { useRowCursor } from '../list/use-row-cursor.ts'

export type OpenEvent = ReturnType<typeof useOpenEvent>

/** The open event, which the URL names, and the functions to open, close and step. */
export function useOpenEvent({
  events,
  openId,
  body,
  isSmall,
  change,
}: {
  events: readonly ExplorerEvent[]
  openId: string | null
  body: RefObject<HTMLElement | null>
  isSmall: boolean
  change: Change
}) {
  const { activeId, setOwnId, move, focusRow } = useRowCursor(events, { body, isSmall, openId })
  const listed = useMemo(() => events.find(({ id }) => id === openId), [events, openId])
  const open = useCallback(
    (id: string) => {
      setOwnId(id)
      change({ event: id })
    },
    [change, setOwnId],
  )
  const close = useCallback(() => {
    setOwnId(openId)
    change({ event: null })
    focusRow(openId)
  }, [change, openId, setOwnId, focusRow])
  /** If an event is open, replaces it with the next one. */
  const step = useCallback(
    (by: 1 | -1) => {
      const event = move(by)
      if (!event) return
      if (openId === null) focusRow(event.id)
      else change({ event: event.id }, { replace: true })
    },
    [move, openId, focusRow, change],
  )
  return { openId, activeId, listed, open, close, step }
}
