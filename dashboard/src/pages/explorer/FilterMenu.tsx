import { Combobox, Loader, useCombobox } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { formatCount } from '../../parts/format.ts'
import { Icon } from '../../parts/Icon.tsx'
import { timesOf } from './event-queries.ts'
import { FILTER_FIELDS, type FilterField } from './explorer-search.ts'
import classes from './FilterBar.module.css'
import { FIELD_WORDS, TRACE_ID } from './filters.ts'
import type { TimeWindow } from './time-window.ts'

const PAUSE_MS = 150
/** What fits without scrolling; whoever means another one types a part of it. */
const VALUES_SHOWN_MAX = 10

type MenuProps = {
  workspaceId: string | undefined
  timeWindow: TimeWindow
  onChoose: (field: FilterField, value: string) => void
}

/** First the field, then one of its values, the most frequent first. */
export function FilterMenu({ workspaceId, timeWindow, onChoose }: MenuProps) {
  const [field, setField] = useState<FilterField | null>(null)
  const [typed, setTyped] = useState('')
  const combobox = useCombobox({
    onDropdownOpen: () => combobox.focusSearchInput(),
    onDropdownClose: () => {
      combobox.resetSelectedOption()
      setField(null)
      setTyped('')
    },
  })
  const choose = (option: string) => {
    setTyped('')
    if (field === null) {
      setField(FILTER_FIELDS.find((name) => name === option) ?? null)
      combobox.resetSelectedOption()
      combobox.focusSearchInput()
      return
    }
    onChoose(field, option)
    combobox.closeDropdown()
    combobox.focusTarget()
  }
  return (
    <Combobox store={combobox} width={320} position="bottom-start" onOptionSubmit={choose}>
      <Combobox.Target withAriaAttributes={false}>
        <button
          type="button"
          className={classes.add}
          aria-expanded={combobox.dropdownOpened}
          aria-haspopup="listbox"
          onClick={() => combobox.toggleDropdown()}
        >
          <Icon name="plus" size={11} />
          filter
        </button>
      </Combobox.Target>
      <Combobox.Dropdown>
        <Combobox.Search
          value={typed}
          maxLength={200}
          aria-label={field === null ? 'Filter by which field' : `Value of ${FIELD_WORDS[field]}`}
          placeholder={field === null ? 'Filter by…' : `${FIELD_WORDS[field]} contains…`}
          onChange={(event) => {
            setTyped(event.currentTarget.value)
            combobox.resetSelectedOption()
          }}
          onKeyDown={(event) => {
            if (event.key === 'Backspace' && typed === '') setField(null)
            // The first one is what whoever goes on typing means.
            if (event.key === 'Enter' && combobox.getSelectedOptionIndex() < 0) {
              combobox.selectFirstOption()
            }
          }}
        />
        <Combobox.Options
          aria-label={field === null ? 'Fields' : `Values of ${FIELD_WORDS[field]}`}
        >
          {field === null ? (
            <FieldOptions typed={typed} />
          ) : (
            <ValueOptions
              field={field}
              typed={typed}
              workspaceId={workspaceId}
              timeWindow={timeWindow}
            />
          )}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  )
}

function FieldOptions({ typed }: { typed: string }) {
  const fields = FILTER_FIELDS.filter((field) => FIELD_WORDS[field].includes(typed.toLowerCase()))
  if (fields.length === 0) return <Combobox.Empty>No such field</Combobox.Empty>
  return fields.map((field) => (
    <Combobox.Option value={field} key={field}>
      {FIELD_WORDS[field]}
    </Combobox.Option>
  ))
}

type ValueProps = Omit<MenuProps, 'onChoose'> & { field: FilterField; typed: string }

function ValueOptions(props: ValueProps) {
  return props.field === 'traceId' ? (
    <TraceOption typed={props.typed} />
  ) : (
    <KnownValues {...props} field={props.field} />
  )
}

function TraceOption({ typed }: { typed: string }) {
  if (!TRACE_ID.test(typed)) return <Combobox.Empty>Paste its 32 hexadecimal digits</Combobox.Empty>
  return <Combobox.Option value={typed}>{typed}</Combobox.Option>
}

type KnownProps = ValueProps & { field: Exclude<FilterField, 'traceId'> }

function KnownValues({ field, typed, workspaceId, timeWindow }: KnownProps) {
  const [contains] = useDebouncedValue(typed, PAUSE_MS)
  // Only these two are counted within a time.
  const times = field === 'category' || field === 'action' ? timesOf(timeWindow) : {}
  const { data, error, isPending } = useQuery({
    queryKey: ['filter-options', field, contains, workspaceId ?? null, times],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/events/filter-options', {
          params: {
            query: {
              field,
              limit: VALUES_SHOWN_MAX,
              ...(contains !== '' && { contains }),
              ...(workspaceId !== undefined && { workspaceId }),
              ...times,
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
            <span className="truncate">{label ?? value}</span>
            <span className="soft numeric">{formatCount(count)}</span>
          </span>
        </Combobox.Option>
      ))}
      {typed !== '' && !isTypedKnown && field !== 'projectId' && (
        <Combobox.Option value={typed}>exactly “{typed}”</Combobox.Option>
      )}
      {typed === '' && data.values.length === 0 && <Combobox.Empty>No values yet</Combobox.Empty>}
    </>
  )
}
