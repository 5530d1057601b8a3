import { Combobox } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import type { Filters } from '../../../query/filters.ts'
import {
  mayAddMetadata,
  METADATA_FULL_TEXT,
  metadataText,
  PATH_LENGTH_MAX,
  VALUE_LENGTH_MAX,
} from '../../../query/metadata.ts'
import classes from './FilterBar.module.css'

/** Keys of these event types are suggested. */
const TYPES_MAX = 100
const KEYS_SHOWN_MAX = 10

/** What the member types: a key, or the value of a key. */
export function metadataStep(path: string | null) {
  const isKey = path === null
  return {
    label: isKey ? 'Metadata key' : `Value of metadata.${path}`,
    options: isKey ? 'Keys of the metadata' : `Values of metadata.${path}`,
    placeholder: isKey ? 'Key, such as request.id' : 'Whole value',
    lengthMax: isKey ? PATH_LENGTH_MAX : VALUE_LENGTH_MAX,
  }
}

type MetadataProps = { path: string | null; typed: string; filters: Filters }

export function MetadataOptions({ path, typed, filters }: MetadataProps) {
  if (path === null) return <KeyOptions typed={typed} workspaceId={filters.workspaceId} />
  const chosen = metadataText({ path, value: typed === '' ? null : typed })
  if (!mayAddMetadata(filters.metadata, chosen)) {
    return (
      <strong className={classes.full} role="alert">
        {METADATA_FULL_TEXT}
      </strong>
    )
  }
  return (
    <Combobox.Option value={chosen}>
      <span className={classes.option}>{typed === '' ? 'exists' : `Exactly “${typed}”`}</span>
    </Combobox.Option>
  )
}

/** Suggests the keys of the workspace's event types. Any other key can be typed. */
function KeyOptions({ typed, workspaceId }: { typed: string; workspaceId: string | undefined }) {
  const { data: known = [] } = useQuery({
    queryKey: ['event-types', workspaceId ?? null, 'metadata-keys'],
    queryFn: async () => (workspaceId === undefined ? [] : await readKeys(workspaceId)),
    staleTime: 60_000,
  })
  const wanted = typed.toLowerCase()
  const shown = known.filter((key) => key.toLowerCase().includes(wanted)).slice(0, KEYS_SHOWN_MAX)
  return (
    <>
      {shown.map((key) => (
        <Combobox.Option value={key} key={key}>
          <span className={`${classes.option} truncate`}>{key}</span>
        </Combobox.Option>
      ))}
      {typed !== '' && !shown.includes(typed) && (
        <Combobox.Option value={typed}>Exactly “{typed}”</Combobox.Option>
      )}
      {typed === '' && shown.length === 0 && <Combobox.Empty>Type a key</Combobox.Empty>}
    </>
  )
}

/** The paths in the metadata of most events first. */
async function readKeys(workspaceId: string): Promise<string[]> {
  const params = { path: { workspaceId }, query: { limit: TYPES_MAX } }
  const { data } = await unwrap(
    client.GET('/dashboard/workspaces/{workspaceId}/event-types', { params }),
  )
  const counts = new Map<string, number>()
  for (const { path, count } of data.flatMap(({ metadataKeys }) => metadataKeys)) {
    const key = path.join('.')
    counts.set(key, (counts.get(key) ?? 0) + count)
  }
  return [...counts].toSorted(([, a], [, b]) => b - a).map(([key]) => key)
}
