import { type RefObject, useCallback, useEffect, useLayoutEffect, useState } from 'react'

/** Rows beyond the screen that are there already, on either side. */
const BEYOND_ROWS = 12
/** The window moves by so many rows at once, so that most scrolling draws nothing at all. */
const STEP_ROWS = 8

export type RowWindow = { first: number; last: number }

/** Which rows of a list of equal ones are near the screen. The page scrolls, not the list. */
export function useRowWindow(
  body: RefObject<HTMLElement | null>,
  { count, rowPx }: { count: number; rowPx: number },
): RowWindow {
  const [rows, setRows] = useState<RowWindow>({ first: 0, last: 40 })
  const look = useCallback(() => {
    if (!body.current) return
    const topPx = body.current.getBoundingClientRect().top
    const seen = windowAt({ topPx, screenPx: window.innerHeight, rowPx, count })
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
  return rows
}

type Sight = { topPx: number; screenPx: number; rowPx: number; count: number }

function windowAt({ topPx, screenPx, rowPx, count }: Sight): RowWindow {
  const above = Math.floor(-topPx / rowPx) - BEYOND_ROWS
  const below = Math.ceil((screenPx - topPx) / rowPx) + BEYOND_ROWS
  const first = Math.max(0, Math.floor(above / STEP_ROWS) * STEP_ROWS)
  const last = Math.min(count, Math.ceil(below / STEP_ROWS) * STEP_ROWS)
  return { first: Math.min(first, count), last: Math.max(last, 0) }
}

function isSame(a: RowWindow, b: RowWindow): boolean {
  return a.first === b.first && a.last === b.last
}
