import type { RefObject } from 'react'
import { useSession } from '../../api/session-context.tsx'
import type { DialogName } from './ExplorerDialogs.tsx'
import { shiftPatch } from '../../query/time-window.ts'
import type { Explorer } from './use-explorer.ts'
import type { OpenEvent } from './event/use-open-event.ts'
import { useShortcuts } from './use-shortcuts.ts'

/** The shortcuts of the explorer. The dialog that `?` opens lists them. */
export function useExplorerKeys({
  explorer: { timeWindow, change },
  opened: { openId, activeId, open, close, step },
  searchField,
  onDialog,
}: {
  explorer: Explorer
  opened: OpenEvent
  searchField: RefObject<HTMLInputElement | null>
  onDialog: (name: DialogName) => void
}): void {
  const { hasPermission } = useSession()
  useShortcuts({
    '/': () => {
      searchField.current?.focus()
      searchField.current?.select()
    },
    j: () => step(1),
    k: () => step(-1),
    Escape: () => openId !== null && close(),
    '[': () => change(shiftPatch(timeWindow, -1, Date.now())),
    ']': () => change(shiftPatch(timeWindow, 1, Date.now())),
    e: () => hasPermission('exports.create') && onDialog('export'),
    s: () => hasPermission('views.manage') && onDialog('save'),
    '?': () => onDialog('help'),
    ArrowDown: (event) => isRow(event.target) && (event.preventDefault(), step(1)),
    ArrowUp: (event) => isRow(event.target) && (event.preventDefault(), step(-1)),
    Enter: ({ target }) => {
      // A focused button or link handles Enter itself.
      if ((target === document.body || isRow(target)) && activeId !== null) open(activeId)
    },
  })
}

function isRow(target: EventTarget | null): boolean {
  return target instanceof Element && target.role === 'row'
}
