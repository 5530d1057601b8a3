import { ActionIcon, CopyButton } from '@mantine/core'
import { useState } from 'react'
import { Icon } from '../../../parts/Icon.tsx'
import classes from './EventPanel.module.css'

/** Deeper levels are collapsed at first. */
const OPEN_LEVELS = 3
/** Entries shown per object or list. Copying includes all of them. */
const ENTRIES_SHOWN_MAX = 200

/** The metadata of an event as a tree. */
export function MetadataTree({ value }: { value: Record<string, unknown> }) {
  return <Entries value={value} level={1} />
}

function Entries({ value, level }: { value: object; level: number }) {
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  return (
    <ul className={classes.tree}>
      {entries.slice(0, ENTRIES_SHOWN_MAX).map(([key, item]) => (
        <li key={key}>
          <Entry name={isList ? `[${key}]` : key} value={item} level={level} />
        </li>
      ))}
      {entries.length > ENTRIES_SHOWN_MAX && (
        <li className="soft">and {entries.length - ENTRIES_SHOWN_MAX} more</li>
      )}
    </ul>
  )
}

function Entry({ name, value, level }: { name: string; value: unknown; level: number }) {
  const [isOpen, setOpen] = useState(level < OPEN_LEVELS)
  if (typeof value !== 'object' || value === null) {
    return (
      <div className={classes.leaf}>
        <span className={classes.key}>{name}</span>
        <span className={classes.value} data-kind={value === null ? 'null' : typeof value}>
          {typeof value === 'string' ? value : JSON.stringify(value)}
        </span>
        <CopyIcon name={name} text={typeof value === 'string' ? value : JSON.stringify(value)} />
      </div>
    )
  }
  const count = Object.keys(value).length
  return (
    <>
      <div className={classes.leaf}>
        <button
          type="button"
          className={classes.branch}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'down' : 'chevron'} size={11} />
          <span className={classes.key}>{name}</span>
          <span className="soft">{Array.isArray(value) ? `[${count}]` : `{${count}}`}</span>
        </button>
        <CopyIcon name={name} text={JSON.stringify(value, null, 2)} />
      </div>
      {isOpen && <Entries value={value} level={level + 1} />}
    </>
  )
}

function CopyIcon({ name, text }: { name: string; text: string }) {
  return (
    <CopyButton value={text} timeout={1_500}>
      {({ copied, copy }) => (
        <ActionIcon
          size="xs"
          variant="subtle"
          color={copied ? 'green' : 'gray'}
          className={classes.copy}
          onClick={copy}
          aria-label={copied ? 'Copied' : `Copy ${name}`}
        >
          <Icon name={copied ? 'check' : 'copy'} size={12} />
        </ActionIcon>
      )}
    </CopyButton>
  )
}
