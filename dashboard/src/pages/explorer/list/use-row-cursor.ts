import { type RefObject, useCallback, useRef, useState } from 'react'
import { useRowPx } from './use-density.ts'
import type { ExplorerEvent } from '../explorer-event.ts'

/** The height of the page bar and the column names, which cover the top of the list. */
const COVERED_PX = 80

/** The row that j, k and Enter act on. Stored as an event id, because new events can arrive above it. */
export function useRowCursor(
  events: readonly ExplorerEvent[],
  {
    body,
    isSmall,
    openId,
  }: { body: RefObject<HTMLElement | null>; isSmall: boolean; openId: string | null },
) {
  const [ownId, setOwnId] = useState<string | null>(null)
  const activeId = openId ?? ownId
  const latest = useRef({ events, activeId })
  latest.current = { events, activeId }
  const rowPx = useRowPx(isSmall)

  /**
   * Moves to the next (1) or previous (-1) event and returns it. Starts with the first visible row if
   * none is active.
   */
  const move = useCallback(
    (by: 1 | -1): ExplorerEvent | null => {
      const { events: rows, activeId: id } = latest.current
      const topPx = body.current?.getBoundingClientRect().top ?? 0
      const at = rows.findIndex((event) => event.id === id)
      const firstSeen = Math.max(0, Math.ceil((COVERED_PX - topPx) / rowPx))
      const index = at < 0 ? firstSeen : Math.min(rows.length - 1, Math.max(0, at + by))
      const event = rows[index]
      if (!event) return null
      scrollToRow(topPx + index * rowPx, rowPx)
      setOwnId(event.id)
      return event
    },
    [body, rowPx],
  )
  const focusRow = useCallback(
    (id: string | null) => {
      // Waits until the row is rendered.
      requestAnimationFrame(() => {
        const row = [...(body.current?.querySelectorAll<HTMLElement>('[data-id]') ?? [])].find(
          ({ dataset }) => dataset['id'] === id,
        )
        row?.focus({ preventScroll: true })
      })
    },
    [body],
  )
  return { activeId, setOwnId, move, focusRow }
}

function scrollToRow(topPx: number, rowPx: number): void {
  const bottomPx = topPx + rowPx
  if (topPx < COVERED_PX) window.scrollBy(0, topPx - COVERED_PX)
  else if (bottomPx > window.innerHeight) window.scrollBy(0, bottomPx - window.innerHeight)
}
