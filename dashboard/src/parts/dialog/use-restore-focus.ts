import { useEffect, useRef } from 'react'

/** Restores the focus for dialogs that load when they open or unmount when they close. */
export function useRestoreFocus(isOpen: boolean): void {
  const before = useRef<Element | null>(null)
  useEffect(() => {
    if (isOpen) before.current = document.activeElement
    else if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true })
  }, [isOpen])
}
