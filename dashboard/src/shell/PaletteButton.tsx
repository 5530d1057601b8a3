import { Button, Kbd } from '@mantine/core'
import { lazy, Suspense, useEffect, useState } from 'react'
import { whenConnected } from '../api/when-connected.ts'
import { commandKey } from '../parts/command-key.ts'
import { useRestoreFocus } from '../parts/dialog/use-restore-focus.ts'

// Loaded when the member opens it.
const CommandPalette = lazy(
  whenConnected(async () => ({
    default: (await import('./palette/CommandPalette.tsx')).CommandPalette,
  })),
)

/** Opens the command palette, as Ctrl+K or ⌘K does on every page. */
export function PaletteButton() {
  const [isOpen, setOpen] = useState(false)
  useRestoreFocus(isOpen)
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isCommand = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey
      if (!isCommand || event.key.toLowerCase() !== 'k' || hasDialog()) return
      event.preventDefault()
      setOpen(true)
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
  return (
    <>
      <Button
        variant="default"
        size="xs"
        visibleFrom="sm"
        rightSection={<Kbd size="xs">{commandKey()} K</Kbd>}
        onClick={() => setOpen(true)}
      >
        Go to
      </Button>
      {isOpen && (
        <Suspense>
          <CommandPalette onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  )
}

/** An open dialog keeps its keys. */
function hasDialog(): boolean {
  const dialogs = document.querySelectorAll('[role=dialog]')
  return [...dialogs].some((dialog) => dialog.checkVisibility())
}
