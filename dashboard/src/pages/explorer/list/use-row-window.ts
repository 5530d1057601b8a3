import { type RefObject, useCallback, useEffect, useLayoutEffect, useState } from 'react'

/** Rows rendered beyond each edge of the screen. */
const OVERSCAN_ROWS = 12
/** The window moves by this many rows at a time, so that most scrolling renders nothing. */
const STEP_ROWS = 8

/** `isScrolled` is false until the member scrolls, so that the list doesn't prefetch until then. */
type RowWindow = { first: number; last: number; isScrolled: boolean }

/** The rows near the screen in a list with rows of equal height. The page scrolls, not the list. */
export function useRowWindow(
  body: RefObject<HTMLElement | null>,
  { count, rowPx }: { count: number; rowPx: number },
): RowWindow {
  const [seenRows, setRows] = useState<RowWindow>({ first: 0, last: 40, isScrolled: false })
  const update = useCallback(() => {
    if (!body.current) return
    const topPx = body.current.getBoundingClientRect().top
    const rows = rowsAt({ topPx, screenPx: window.innerHeight, rowPx, count })
    const seen = { ...rows, isScrolled: window.scrollY > 0 }
    setRows((before) => (isSame(before, seen) ? before : seen))
  }, [body, rowPx, count])
  useLayoutEffect(update, [update])
  useEffect(() => {
    window.addEventListener('scroll', update, { passive: true })
    window.addEventListener('resize', update)
    return () => {
      window.removeEventListener('scroll', update)
      window.removeEventListener('resize', update)
    }
  }, [update])
  return seenRows
}

type Viewport = { topPx: number; screenPx: number; rowPx: number; count: number }

function rowsAt({ topPx, screenPx, rowPx, count }: Viewport): Omit<RowWindow, 'isScrolled'> {
  const above = Math.floor(-topPx / rowPx) - OVERSCAN_ROWS
  const below = Math.ceil((screenPx - topPx) / rowPx) + OVERSCAN_ROWS
  const first = Math.max(0, Math.floor(above / STEP_ROWS) * STEP_ROWS)
  const last = Math.min(count, Math.ceil(below / STEP_ROWS) * STEP_ROWS)
  return { first: Math.min(first, count), last: Math.max(last, 0) }
}

function isSame(a: RowWindow, b: RowWindow): boolean {
  return a.first === b.first && a.last === b.last && a.isScrolled === b.isScrolled
}
