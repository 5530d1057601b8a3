import { useEffect, useLayoutEffect, useRef } from 'react'

type Shortcuts = Record<string, (event: KeyboardEvent) => unknown>

/** Runs keyboard shortcuts, except while the member is typing. */
export function useShortcuts(shortcuts: Shortcuts): void {
  const latest = useRef(shortcuts)
  useLayoutEffect(() => {
    latest.current = shortcuts
  })
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const act = latest.current[event.key]
      if (!act || event.ctrlKey || event.metaKey || event.altKey || isReserved(event)) return
      // The shortcut can focus a field, which must not receive the letter.
      if (event.key.length === 1) event.preventDefault()
      act(event)
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
}

/** True if the key belongs to a field, or to an open dialog or menu. */
function isReserved({ target, defaultPrevented }: KeyboardEvent): boolean {
  if (defaultPrevented) return true
  const overlays = document.querySelectorAll('[role=dialog],[role=menu],[role=listbox]')
  if ([...overlays].some((overlay) => overlay.checkVisibility())) return true
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  )
}
