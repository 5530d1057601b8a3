import { Button, Group, Skeleton, Stack, Switch, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { EmptyState } from '../../parts/message/EmptyState.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { Gate } from '../../parts/Gate.tsx'
import { LoadMoreButton } from '../../parts/table/LoadMoreButton.tsx'
import { DataTable } from '../../parts/table/DataTable.tsx'
import classes from './KeyList.module.css'
import { KeyRow } from './KeyRow.tsx'
import { isActiveKey, type Key, useKeys } from './keys.ts'
import { useKeysWorkspace } from './use-keys-workspace.ts'

const route = getRouteApi('/shell/app/keys')

type ListProps = { onCreate: () => void; onRotate: (key: Key) => void }

export function KeyList({ onCreate, onRotate }: ListProps) {
  const workspace = useKeysWorkspace()
  const { ended: hasEnded = false } = route.useSearch()
  const navigate = route.useNavigate()
  const { pages, items: all } = useKeys(workspace?.id ?? null)
  const shown = hasEnded ? all : all.filter(isActiveKey)
  const hiddenCount = all.length - shown.length
  if (pages.isPending) return <KeySkeleton />
  if (pages.error) return <ErrorBox error={pages.error} onRetry={pages.refetch} />
  if (all.length === 0) {
    return (
      <EmptyState icon="key" title={workspace ? `${workspace.name} has no keys` : 'No keys yet'}>
        <Text size="sm" className="soft" ta="center" maw={420}>
          A key lets a program send events. It is shown once, with a command to try it out.
        </Text>
        <Gate permission="keys.manage" action="create keys">
          <Button size="xs" mt="xs" onClick={onCreate}>
            Create key
          </Button>
        </Gate>
      </EmptyState>
    )
  }
  return (
    <>
      <Group justify="space-between" mb="xs" gap="xs">
        <Text size="sm" className="soft numeric" role="status">
          {formatCount(shown.length)} {shown.length === 1 ? 'key' : 'keys'}
          {workspace && ` in ${workspace.name}, without company keys`}
          {hiddenCount > 0 && `, ${formatCount(hiddenCount)} ended and hidden`}
        </Text>
        <Switch
          size="xs"
          label="Show ended keys"
          checked={hasEnded}
          onChange={(event) =>
            void navigate({ search: event.currentTarget.checked ? { ended: true } : {} })
          }
        />
      </Group>
      <KeyTable keys={shown} onRotate={onRotate} />
      <LoadMoreButton pages={pages}>Show older keys</LoadMoreButton>
    </>
  )
}

function KeyTable({ keys, onRotate }: Pick<ListProps, 'onRotate'> & { keys: readonly Key[] }) {
  if (keys.length === 0) {
    return (
      <Text size="sm" className="soft" py="lg">
        All of these keys have ended. To see them, turn on “Show ended keys”.
      </Text>
    )
  }
  return (
    <DataTable
      label="Keys"
      columns={['Name', 'Scope', 'Status', 'Last used', 'Expires', 'Health']}
      className={classes.keys}
    >
      {keys.map((key) => (
        <KeyRow apiKey={key} key={key.id} onRotate={onRotate} />
      ))}
    </DataTable>
  )
}

function KeySkeleton() {
  return (
    <Stack gap={6} aria-label="Loading keys" role="status">
      {[1, 2, 3, 4].map((line) => (
        <Skeleton height={44} radius="sm" key={line} />
      ))}
    </Stack>
  )
}
