import { useEffect, useRef } from 'react'

/** To where the focus was. A dialog that is loaded as it opens, or gone as it closes, cannot do it itself. */
export function useFocusBack(isOpen: boolean): void {
  const before = useRef<Element | null>(null)
  useEffect(() => {
    if (isOpen) before.current = document.activeElement
    else if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true })
  }, [isOpen])
}
