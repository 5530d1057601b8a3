import { Combobox, Loader, useCombobox } from '@mantine/core'
import { useDebouncedValue, useDisclosure } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { formatCount } from '../../../parts/text/format.ts'
import { showInvisible } from '../../../parts/text/show-invisible.ts'
import {
  type Exclusion,
  EXCLUSIONS_FULL_TEXT,
  isExcludable,
  VALUES_FULL_TEXT,
} from '../../../query/exclusions.ts'
import { FILTER_FIELDS, type FilterField } from '../../../query/filter-fields.ts'
import { AddFilterButton } from './AddFilterButton.tsx'
import type { DayRange } from './Calendar.tsx'
import { CustomRange } from './CustomRange.tsx'
import classes from './FilterBar.module.css'
import { MetadataOptions, metadataStep } from './MetadataOptions.tsx'
import { captionOf, isCounted, periodOf, type SuggestedField } from './suggestion-counts.ts'
import { FIELD_LABELS, type Filters, mayAdd, mayExclude, TRACE_ID } from '../../../query/filters.ts'
import type { TimeWindow } from '../../../query/time-window.ts'

const DEBOUNCE_MS = 150
/** The number of values that fit without scrolling. Typing finds the others. */
const VALUES_SHOWN_MAX = 10

export type MenuProps = {
  filters: Filters
  timeWindow: TimeWindow
  onChoose: (field: FilterField, value: string) => void
  onExclude: (exclusion: Exclusion) => void
  /** Called with a filter by metadata, in the notation of the URL. */
  onMetadata: (text: string) => void
  onReceived: (times: DayRange) => void
}

/** Metadata has one more step: a key, and then its value. */
type MenuField = FilterField | 'metadata'
/** A field that opens a dialog, because its value is a range of times. */
const RECEIVED = 'received'

/**
 * Chooses a field and then one of its values, most frequent first, to filter by or to exclude. It is open when
 * it appears, because it is loaded to be opened.
 */
export function FilterMenu({ filters, timeWindow, onReceived, ...on }: MenuProps) {
  const [isRange, range] = useDisclosure(false)
  const { combobox, field, path, isNot, setNot, typed, setTyped, isShift, ...choice } =
    useFilterChoice({ filters, ...on, onRange: range.open })
  const { label, options, placeholder, lengthMax } = stepOf(field, path)
  return (
    <>
      <Combobox store={combobox} width={320} position="bottom-start" onOptionSubmit={choice.choose}>
        <Combobox.Target withAriaAttributes={false}>
          <AddFilterButton
            aria-expanded={combobox.dropdownOpened}
            onClick={() => combobox.toggleDropdown()}
          />
        </Combobox.Target>
        <Combobox.Dropdown>
          <Combobox.Search
            autoFocus
            value={typed}
            maxLength={lengthMax}
            aria-label={label}
            placeholder={placeholder}
            onChange={(event) => {
              setTyped(event.currentTarget.value)
              combobox.resetSelectedOption()
            }}
            onKeyDown={(event) => {
              if (event.key === 'Backspace' && typed === '') choice.goBack()
              isShift.current = event.key === 'Enter' && event.shiftKey
              // Enter without a selection chooses the first option.
              if (event.key === 'Enter' && combobox.getSelectedOptionIndex() < 0) {
                combobox.selectFirstOption()
              }
            }}
          />
          {field !== null && isExcludable(field) && (
            <IncludeToggle
              isNot={isNot}
              isFull={choice.isFull}
              isRejected={choice.isRejected}
              onChange={(next) => {
                setNot(next)
                combobox.focusSearchInput()
              }}
            />
          )}
          <Caption field={field} filters={filters} />
          <Combobox.Options aria-label={options}>
            {field === null ? (
              <FieldOptions typed={typed} />
            ) : field === 'metadata' ? (
              <MetadataOptions path={path} typed={typed} filters={filters} />
            ) : (
              <ValueOptions field={field} typed={typed} filters={filters} timeWindow={timeWindow} />
            )}
          </Combobox.Options>
        </Combobox.Dropdown>
      </Combobox>
      <CustomRange
        isOpen={isRange}
        onClose={() => {
          range.close()
          combobox.focusTarget()
        }}
        title="Received"
        times={receivedTimes(filters, timeWindow)}
        onApply={onReceived}
      />
    </>
  )
}

/** The range of the filter. Where it is open, the limit of the period. */
function receivedTimes(
  { receivedFrom, receivedTo }: Filters,
  { fromMs, toMs }: TimeWindow,
): DayRange {
  return {
    fromMs: receivedFrom === undefined ? fromMs : Date.parse(receivedFrom),
    toMs: receivedTo === undefined ? toMs : Date.parse(receivedTo),
  }
}

/** What the member types next. */
function stepOf(field: MenuField | null, path: string | null) {
  if (field === 'metadata') return metadataStep(path)
  const name = field === null ? null : FIELD_LABELS[field]
  return {
    label: name === null ? 'Field to filter by' : `Value of ${name}`,
    options: name === null ? 'Fields' : `Values of ${name}`,
    placeholder: name === null ? 'Filter by…' : `${name} contains…`,
    lengthMax: 200,
  }
}

function Caption({ field, filters }: { field: MenuField | null; filters: Filters }) {
  if (field === null || field === 'metadata') return null
  return (
    <>
      {field !== 'traceId' && (
        <div className={`${classes.caption} soft`}>{captionOf(field, filters)}</div>
      )}
      {!mayAdd(filters, field) && (
        <strong className={classes.full} role="alert">
          {VALUES_FULL_TEXT}
        </strong>
      )}
    </>
  )
}

/** What the member has chosen and typed so far. Closing the menu discards it. */
function useFilterChoice({
  filters,
  onChoose,
  onExclude,
  onMetadata,
  onRange,
}: Omit<MenuProps, 'timeWindow' | 'onReceived'> & { onRange: () => void }) {
  const [field, setField] = useState<MenuField | null>(null)
  // The key of the metadata.
  const [path, setPath] = useState<string | null>(null)
  const [isNot, setNot] = useState(false)
  // Shift+Enter excludes the value regardless of the switch.
  const isShift = useRef(false)
  const [typed, setTyped] = useState('')
  const combobox = useCombobox({
    defaultOpened: true,
    onDropdownOpen: () => combobox.focusSearchInput(),
    onDropdownClose: () => {
      combobox.resetSelectedOption()
      setField(null)
      setPath(null)
      setNot(false)
      setRejected(false)
      setTyped('')
    },
  })
  const isFull = !mayExclude(filters)
  const [isRejected, setRejected] = useState(false)
  const choose = (option: string) => {
    const isExclusion = isNot || isShift.current
    isShift.current = false
    if (isExclusion && isFull && field !== null && isExcludable(field)) {
      setRejected(true)
      return
    }
    setTyped('')
    if (field === null && option === RECEIVED) {
      combobox.closeDropdown()
      onRange()
      return
    }
    if (field === null || (field === 'metadata' && path === null)) {
      if (field === null) setField(MENU_FIELDS.find((name) => name === option) ?? null)
      else setPath(option)
      combobox.resetSelectedOption()
      combobox.focusSearchInput()
      return
    }
    if (field === 'metadata') onMetadata(option)
    else if (!isExclusion || !isExcludable(field)) onChoose(field, option)
    else onExclude({ field, value: option })
    combobox.closeDropdown()
    combobox.focusTarget()
  }
  const goBack = () => (path === null ? setField(null) : setPath(null))
  const typing = { typed, setTyped, isShift }
  return { combobox, field, path, isNot, setNot, ...typing, isFull, isRejected, choose, goBack }
}

function IncludeToggle({
  isNot,
  isFull,
  isRejected,
  onChange,
}: {
  isNot: boolean
  isFull: boolean
  /** The member tried to exclude a value although the limit is reached. */
  isRejected: boolean
  onChange: (isNot: boolean) => void
}) {
  return (
    <div className={classes.isOrNot}>
      <div className={classes.choices} role="radiogroup" aria-label="Include or exclude the value">
        <RadioOption label="is" isChosen={!isNot} onChoose={() => onChange(false)} />
        <RadioOption
          label="is not"
          isChosen={isNot}
          isDisabled={isFull}
          onChoose={() => onChange(true)}
        />
      </div>
      {isFull && !isRejected && <span className="soft">{EXCLUSIONS_FULL_TEXT}</span>}
      {isFull && isRejected && (
        <strong className={classes.full} role="alert">
          {EXCLUSIONS_FULL_TEXT}
        </strong>
      )}
    </div>
  )
}

function RadioOption({
  label,
  isChosen,
  isDisabled = false,
  onChoose,
}: {
  label: string
  isChosen: boolean
  isDisabled?: boolean
  onChoose: () => void
}) {
  return (
    <label className={classes.choice}>
      <input
        type="radio"
        name="is-or-not"
        checked={isChosen}
        disabled={isDisabled}
        onChange={onChoose}
      />
      {label}
    </label>
  )
}

const MENU_FIELDS: readonly MenuField[] = [...FILTER_FIELDS, 'metadata']
const MENU_LABELS = { ...FIELD_LABELS, metadata: 'metadata', [RECEIVED]: 'received' }

function FieldOptions({ typed }: { typed: string }) {
  const fields = ([...MENU_FIELDS, RECEIVED] as const).filter((field) =>
    MENU_LABELS[field].toLowerCase().includes(typed.toLowerCase()),
  )
  if (fields.length === 0) return <Combobox.Empty>No matching fields</Combobox.Empty>
  return fields.map((field) => (
    <Combobox.Option value={field} key={field}>
      {MENU_LABELS[field]}
    </Combobox.Option>
  ))
}

type ValueProps = Pick<MenuProps, 'filters' | 'timeWindow'> & { field: FilterField; typed: string }

function ValueOptions(props: ValueProps) {
  return props.field === 'traceId' ? (
    <TraceOption typed={props.typed} />
  ) : (
    <SuggestedValues {...props} field={props.field} />
  )
}

function TraceOption({ typed }: { typed: string }) {
  if (!TRACE_ID.test(typed))
    return <Combobox.Empty>Paste a trace ID (32 hexadecimal digits)</Combobox.Empty>
  return <Combobox.Option value={typed}>{typed}</Combobox.Option>
}

type SuggestedProps = ValueProps & { field: SuggestedField }

function SuggestedValues({ field, typed, filters, timeWindow }: SuggestedProps) {
  const [contains] = useDebouncedValue(typed, DEBOUNCE_MS)
  const { workspaceId } = filters
  const within = periodOf(field, filters, timeWindow)
  const { data, error, isPending } = useQuery({
    queryKey: ['filter-options', field, contains, workspaceId ?? null, within],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/events/filter-options', {
          params: {
            query: {
              field,
              limit: VALUES_SHOWN_MAX,
              ...(contains !== '' && { contains }),
              ...(workspaceId !== undefined && { workspaceId }),
              ...within,
            },
          },
        }),
      ),
    placeholderData: keepPreviousData,
  })
  if (error) return <Combobox.Empty>{error.message}</Combobox.Empty>
  if (isPending) {
    return (
      <Combobox.Empty>
        <Loader size="xs" aria-label="Loading" />
      </Combobox.Empty>
    )
  }
  const isTypedKnown = data.values.some(({ value }) => value === typed)
  return (
    <>
      {data.values.map(({ value, label, count }) => (
        <Combobox.Option value={value} key={value}>
          <span className={classes.option}>
            <span className="truncate">{showInvisible(label ?? value)}</span>
            {isCounted(field, filters) && (
              <span className="soft numeric">{formatCount(count)}</span>
            )}
          </span>
        </Combobox.Option>
      ))}
      {typed !== '' && !isTypedKnown && field !== 'projectId' && (
        <Combobox.Option value={typed}>Exactly “{typed}”</Combobox.Option>
      )}
      {typed === '' && data.values.length === 0 && <Combobox.Empty>No values</Combobox.Empty>}
    </>
  )
}
