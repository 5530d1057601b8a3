import { Modal } from '@mantine/core'
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'
import { Icon } from '../../parts/Icon.tsx'
import classes from './CommandPalette.module.css'
import { type Command, filterCommands } from './commands.ts'
import { useCommands } from './use-commands.ts'

const PLACEHOLDER = 'Page, workspace, view, event ID or search'

/** Finds a page, a workspace, a view, an event or a search by typing, and goes there. */
export function CommandPalette({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [active, setActive] = useState(0)
  const listId = useId()
  const commands = filterCommands(useCommands(typed), typed)
  const current = Math.min(active, commands.length - 1)
  const run = (command: Command | undefined) => {
    if (!command) return
    onClose()
    command.run()
  }
  const press = (event: KeyboardEvent) => {
    const next = stepOf(event.key, current, commands.length)
    if (next !== null) {
      event.preventDefault()
      setActive(next)
    } else if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
      event.preventDefault()
      run(commands[current])
    }
  }
  return (
    <Modal.Root opened onClose={onClose} padding={0} size={560} yOffset="12vh">
      <Modal.Overlay />
      <Modal.Content aria-label="Go to">
        <label className={classes.search}>
          <Icon name="search" />
          <input
            type="text"
            role="combobox"
            aria-label="Go to"
            aria-expanded
            aria-controls={listId}
            aria-activedescendant={current >= 0 ? `${listId}-${current}` : undefined}
            aria-autocomplete="list"
            autoComplete="off"
            spellCheck={false}
            data-autofocus
            placeholder={PLACEHOLDER}
            value={typed}
            onChange={(event) => {
              setTyped(event.currentTarget.value)
              setActive(0)
            }}
            onKeyDown={press}
          />
        </label>
        <ul id={listId} role="listbox" aria-label="Results" className={classes.list}>
          {commands.map((command, index) => (
            <Option
              key={command.key}
              id={`${listId}-${index}`}
              command={command}
              isActive={index === current}
              onPoint={() => setActive(index)}
              onRun={() => run(command)}
            />
          ))}
        </ul>
      </Modal.Content>
    </Modal.Root>
  )
}

/** Where a key moves the selection. Null if it doesn't. */
function stepOf(key: string, current: number, count: number): number | null {
  if (count === 0) return null
  if (key === 'ArrowDown') return (current + 1) % count
  if (key === 'ArrowUp') return (current - 1 + count) % count
  return null
}

function Option({
  id,
  command: { label, group, icon },
  isActive,
  onPoint,
  onRun,
}: {
  id: string
  command: Command
  isActive: boolean
  onPoint: () => void
  onRun: () => void
}) {
  const item = useRef<HTMLLIElement>(null)
  useEffect(() => {
    if (isActive) item.current?.scrollIntoView({ block: 'nearest' })
  }, [isActive])
  return (
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- the input keeps the focus and handles keys
    <li
      ref={item}
      id={id}
      role="option"
      aria-selected={isActive}
      className={classes.option}
      onPointerMove={onPoint}
      onClick={onRun}
    >
      <Icon name={icon} />
      <span className="truncate">{label}</span>
      <span className="soft">{group}</span>
    </li>
  )
}
