import { ActionIcon, CopyButton } from '@mantine/core'
import { useState } from 'react'
import { Icon } from '../../../parts/Icon.tsx'
import { canFilter, type MetadataFilter } from '../../../query/metadata.ts'
import classes from './EventPanel.module.css'
import { showInvisible } from '../../../parts/text/show-invisible.ts'

/** Deeper levels are collapsed at first. */
const OPEN_LEVELS = 3
/** Entries shown per object or list. Copying includes all of them. */
const ENTRIES_SHOWN_MAX = 200

type OnFilter = (filter: MetadataFilter) => void

/** The metadata of an event as a tree. */
export function MetadataTree({
  value,
  onFilter,
}: {
  value: Record<string, unknown>
  onFilter: OnFilter
}) {
  return <Entries value={value} path="" level={1} onFilter={onFilter} />
}

type NodeProps = {
  /** The keys that lead to the value, as the service joins them. Empty for the metadata itself. */
  path: string
  level: number
  onFilter: OnFilter
}

function Entries({ value, path, level, onFilter }: NodeProps & { value: object }) {
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  return (
    <ul className={classes.tree}>
      {entries.slice(0, ENTRIES_SHOWN_MAX).map(([key, item]) => (
        <li key={key}>
          <Entry
            name={isList ? `[${key}]` : key}
            value={item}
            path={isList ? path : path === '' ? key : `${path}.${key}`}
            level={level}
            onFilter={onFilter}
          />
        </li>
      ))}
      {entries.length > ENTRIES_SHOWN_MAX && (
        <li className="soft">and {entries.length - ENTRIES_SHOWN_MAX} more</li>
      )}
    </ul>
  )
}

function Entry(props: NodeProps & { name: string; value: unknown }) {
  const { name, value, path, level, onFilter } = props
  const [isOpen, setOpen] = useState(level < OPEN_LEVELS)
  if (typeof value !== 'object' || value === null) {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return (
      <div className={classes.leaf}>
        <span className={classes.key}>{showInvisible(name)}</span>
        <span className={classes.value} data-kind={value === null ? 'null' : typeof value}>
          {showInvisible(text)}
        </span>
        <CopyIcon name={name} text={text} />
        {canFilter(path, text) && (
          <FilterIcon path={path} onClick={() => onFilter({ path, value: text })} />
        )}
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
          <span className={classes.key}>{showInvisible(name)}</span>
          <span className="soft">{Array.isArray(value) ? `[${count}]` : `{${count}}`}</span>
        </button>
        <CopyIcon name={name} text={JSON.stringify(value, null, 2)} />
      </div>
      {isOpen && <Entries value={value} path={path} level={level + 1} onFilter={onFilter} />}
    </>
  )
}

function FilterIcon({ path, onClick }: { path: string; onClick: () => void }) {
  return (
    <ActionIcon
      size="xs"
      variant="subtle"
      color="gray"
      className={classes.copy}
      onClick={onClick}
      aria-label={`Filter by this metadata.${path}`}
      title="Filter by this"
    >
      <Icon name="filter" size={12} />
    </ActionIcon>
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
