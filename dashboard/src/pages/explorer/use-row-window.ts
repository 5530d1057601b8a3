import { type RefObject, useCallback, useEffect, useLayoutEffect, useState } from 'react'

/** Rows beyond the screen that are there already, on either side. */
const BEYOND_ROWS = 12
/** The window moves by so many rows at once, so that most scrolling draws nothing at all. */
const STEP_ROWS = 8

/** Whoever has not scrolled may be content with what is on the screen. */
export type RowWindow = { first: number; last: number; isScrolled: boolean }

/** Which rows of a list of equal ones are near the screen. The page scrolls, not the list. */
export function useRowWindow(
  body: RefObject<HTMLElement | null>,
  { count, rowPx }: { count: number; rowPx: number },
): RowWindow {
  const [seenRows, setRows] = useState<RowWindow>({ first: 0, last: 40, isScrolled: false })
  const look = useCallback(() => {
    if (!body.current) return
    const topPx = body.current.getBoundingClientRect().top
    const rows = rowsAt({ topPx, screenPx: window.innerHeight, rowPx, count })
    const seen = { ...rows, isScrolled: window.scrollY > 0 }
    setRows((before) => (isSame(before, seen) ? before : seen))
  }, [body, rowPx, count])
  useLayoutEffect(look, [look])
  useEffect(() => {
    window.addEventListener('scroll', look, { passive: true })
    window.addEventListener('resize', look)
    return () => {
      window.removeEventListener('scroll', look)
      window.removeEventListener('resize', look)
    }
  }, [look])
  return seenRows
}

type Sight = { topPx: number; screenPx: number; rowPx: number; count: number }

function rowsAt({ topPx, screenPx, rowPx, count }: Sight): Omit<RowWindow, 'isScrolled'> {
  const above = Math.floor(-topPx / rowPx) - BEYOND_ROWS
  const below = Math.ceil((screenPx - topPx) / rowPx) + BEYOND_ROWS
  const first = Math.max(0, Math.floor(above / STEP_ROWS) * STEP_ROWS)
  const last = Math.min(count, Math.ceil(below / STEP_ROWS) * STEP_ROWS)
  return { first: Math.min(first, count), last: Math.max(last, 0) }
}

function isSame(a: RowWindow, b: RowWindow): boolean {
  return a.first === b.first && a.last === b.last && a.isScrolled === b.isScrolled
}
