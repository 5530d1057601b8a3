import { useEffect, useLayoutEffect, useRef } from 'react'

export type Shortcuts = Record<string, (event: KeyboardEvent) => unknown>

/** Keys for whoever does not type into something just now. */
export function useShortcuts(shortcuts: Shortcuts): void {
  const latest = useRef(shortcuts)
  useLayoutEffect(() => {
    latest.current = shortcuts
  })
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const act = latest.current[event.key]
      if (!act || event.ctrlKey || event.metaKey || event.altKey || isElsewhere(event)) return
      // The letter itself is for nobody: a field that is focused now would take it.
      if (event.key.length === 1) event.preventDefault()
      act(event)
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
}

/** A field takes its letters, and an open dialog or menu its own keys. */
function isElsewhere({ target, defaultPrevented }: KeyboardEvent): boolean {
  if (defaultPrevented) return true
  const overlays = document.querySelectorAll('[role=dialog],[role=menu],[role=listbox]')
  if ([...overlays].some((overlay) => overlay.checkVisibility())) return true
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  )
}
