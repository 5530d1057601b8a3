import { Group, Select } from '@mantine/core'
import { useKeys } from '../../keys/keys.ts'
import { SERVICE_ACTORS } from './activity-actor.ts'
import { RANGES } from '../../../query/time-window.ts'
import { type ActivitySearch, readActivitySearch, SOURCES, SUBJECTS } from './activity-search.ts'
import { useMembers } from '../member/members.ts'

type Option = { value: string; label: string }
type FilterName = keyof ActivitySearch

const ALL = 'ALL'
const OPTIONS: Record<Exclude<FilterName, 'actor'>, Option[]> = {
  subject: optionsOf(SUBJECTS),
  source: optionsOf(SOURCES),
  range: Object.entries(RANGES).map(([value, { label }]) => ({ value, label })),
}
const FILTERS = [
  { name: 'subject', label: 'Subject', all: 'All subjects' },
  { name: 'actor', label: 'Actor', all: 'All actors' },
  { name: 'source', label: 'Source', all: 'Dashboard and API' },
  { name: 'range', label: 'Time', all: 'Any time' },
] as const satisfies readonly { name: FilterName; label: string; all: string }[]

/** Each filter narrows the list further. */
export function ActivityFilters({
  search,
  onChange,
}: {
  search: ActivitySearch
  onChange: (search: ActivitySearch) => void
}) {
  const actors = useActorOptions(search.actor)
  return (
    <Group gap="xs" mb="sm">
      {FILTERS.map(({ name, label, all }) => (
        <Select
          key={name}
          aria-label={label}
          size="xs"
          w={{ base: 'calc(50% - 5px)', xs: 190 }}
          allowDeselect={false}
          searchable={name === 'actor'}
          data={[{ value: ALL, label: all }, ...(name === 'actor' ? actors : OPTIONS[name])]}
          value={search[name] ?? ALL}
          onChange={(value) =>
            onChange(readActivitySearch({ ...search, [name]: value === ALL ? undefined : value }))
          }
        />
      ))}
    </Group>
  )
}

/** Members, keys, the operator and Annals itself. A removed member can still be in the URL. */
function useActorOptions(chosen: string | undefined): Option[] {
  const { data: { members } = { members: [] } } = useMembers()
  const { items: keys } = useKeys(null)
  const options = [
    ...members.map(({ email }) => ({ value: email, label: email })),
    ...keys.map(({ id, name }) => ({ value: id, label: `Key ${name}` })),
    ...optionsOf(SERVICE_ACTORS),
  ]
  if (chosen === undefined || options.some(({ value }) => value === chosen)) return options
  return [...options, { value: chosen, label: chosen }]
}

function optionsOf(labels: Record<string, string>): Option[] {
  return Object.entries(labels).map(([value, label]) => ({ value, label }))
}
