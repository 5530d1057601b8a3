import { CloseButton, Kbd } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { memo, type RefObject, useEffect, useRef, useState } from 'react'
import { Icon } from '../../../parts/Icon.tsx'
import { exclusionText } from '../../../query/exclusions.ts'
import { AddFilter } from './AddFilter.tsx'
import classes from './FilterBar.module.css'
import {
  type Chip,
  chipKey,
  clearPatch,
  type Filters,
  labelOf,
  removePatch,
} from '../../../query/filters.ts'
import { mayAddMetadata, METADATA_FULL_TEXT, readTyped } from '../../../query/metadata.ts'
import { receivedPatch } from '../../../query/received.ts'
import type { TimeWindow } from '../../../query/time-window.ts'
import { addPatch } from '../../../query/explorer-search.ts'
import type { Change } from '../use-explorer.ts'
import { showInvisible } from '../../../parts/text/show-invisible.ts'

const TEXT_LENGTH_MAX = 200
/** The search runs after this pause in typing. */
const DEBOUNCE_MS = 250

type BarProps = {
  filters: Filters
  chips: readonly Chip[]
  /** The name of a workspace that the workspace picker doesn't offer. */
  otherWorkspace: string | null
  timeWindow: TimeWindow
  change: Change
  searchRef: RefObject<HTMLInputElement | null>
}

/** The search field and the filter chips. */
export const FilterBar = memo(function FilterBar(props: BarProps) {
  const { filters, chips, otherWorkspace, timeWindow, change, searchRef } = props
  const isFiltered = chips.length > 0 || filters.text !== undefined
  const last = chips.at(-1)
  return (
    <search className={classes.bar}>
      <SearchField
        text={filters.text ?? ''}
        onText={(text) => change({ text: text === '' ? null : text }, { replace: true })}
        onBackspace={() => last && change(removePatch(last))}
        metadata={filters.metadata}
        onMetadata={(text) => change({ text: null, addMetadata: text })}
        searchRef={searchRef}
      />
      <div className={classes.chips}>
        {otherWorkspace !== null && (
          <ChipButton
            label="workspace"
            value={otherWorkspace}
            onRemove={() => change({ workspaceId: null, event: null })}
            onDelete={() => searchRef.current?.focus()}
          />
        )}
        {chips.map((chip, index) => (
          <ChipButton
            key={chipKey(chip)}
            label={labelOf(chip)}
            isAlternative={isAlternative(chip, chips[index - 1])}
            value={chip.value}
            onRemove={() => change(removePatch(chip))}
            onDelete={() => searchRef.current?.focus()}
          />
        ))}
        <AddFilter
          filters={filters}
          timeWindow={timeWindow}
          onChoose={(field, value) => change(addPatch({ [field]: value }))}
          onExclude={(exclusion) => change({ exclude: exclusionText(exclusion) })}
          onMetadata={(text) => change({ addMetadata: text })}
          onReceived={({ fromMs, toMs }) => change(receivedPatch(fromMs, toMs))}
        />
        {isFiltered && (
          <button
            type="button"
            className={classes.clear}
            onClick={() => {
              change(clearPatch())
              searchRef.current?.focus()
            }}
          >
            Clear filters
          </button>
        )}
      </div>
    </search>
  )
})

/** Whether the chip is a further value of the field of the chip before it. */
function isAlternative({ field, label, excluded }: Chip, before: Chip | undefined): boolean {
  const isSame = before?.field === field && before.label === label
  return excluded === null && isSame && before.excluded === null
}

function ChipButton({
  label,
  value,
  isAlternative = false,
  onRemove,
  onDelete,
}: {
  label: string
  value: string
  isAlternative?: boolean
  onRemove: () => void
  /** Called when a key removes the chip, so that the focus can move on. */
  onDelete: () => void
}) {
  return (
    <span className={classes.chip}>
      <span className="soft">
        {isAlternative && 'or '}
        {showInvisible(label)}:
      </span>
      <span className="truncate" title={showInvisible(value)}>
        {showInvisible(value)}
      </span>
      <CloseButton
        size={18}
        iconSize={12}
        onClick={onRemove}
        onKeyDown={({ key }) => {
          if (key !== 'Backspace' && key !== 'Delete') return
          onRemove()
          onDelete()
        }}
        aria-label={`Remove filter ${label}: ${value}`}
      />
    </span>
  )
}

type FieldProps = {
  text: string
  onText: (text: string) => void
  onBackspace: () => void
  /** The filters by metadata that the query already has. */
  metadata: readonly string[] | undefined
  onMetadata: (text: string) => void
  searchRef: RefObject<HTMLInputElement | null>
}

function SearchField(props: FieldProps) {
  const { text, onText, onBackspace, metadata, onMetadata, searchRef } = props
  const [typed, setTyped] = useState(text)
  // A filter that is being typed isn't searched for as a text.
  const filter = readTyped(typed)
  const isFull = typeof filter === 'string' && !mayAddMetadata(metadata, filter)
  const sent = useRef(text)
  const send = useDebouncedCallback((value: string) => {
    sent.current = value
    onText(value)
  }, DEBOUNCE_MS)
  // The URL can change in other ways: a view, the back button, "Clear filters".
  useEffect(() => {
    if (text === sent.current) return
    sent.current = text
    setTyped(text)
  }, [text])
  return (
    <label className={classes.field}>
      <Icon name="search" size={14} />
      <input
        ref={searchRef}
        type="text"
        role="searchbox"
        className={classes.input}
        aria-label="Search actor, resource, action, category and metadata"
        placeholder="Search actor, resource, action, category, metadata value…"
        maxLength={TEXT_LENGTH_MAX}
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => {
          const { value } = event.currentTarget
          setTyped(value)
          if (readTyped(value) === undefined) send(value)
          else send.cancel()
        }}
        onKeyDown={(event) => {
          if (event.key === 'Backspace' && typed === '') onBackspace()
          if (event.key === 'Enter' && filter !== undefined) {
            if (filter === null || isFull) return
            setTyped('')
            sent.current = ''
            onMetadata(filter)
          }
          // Moves the focus to the list, whose shortcuts are letters.
          if (event.key === 'Enter') send.flush()
          if (event.key === 'Enter' || event.key === 'Escape') event.currentTarget.blur()
        }}
      />
      <span role="status" className={classes.hint}>
        {isFull
          ? METADATA_FULL_TEXT
          : filter === null
            ? 'Type a value, or * for any'
            : filter !== undefined && 'Press Enter to add the filter'}
      </span>
      <Kbd size="xs" visibleFrom="sm" aria-hidden="true">
        /
      </Kbd>
    </label>
  )
}
