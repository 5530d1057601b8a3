import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import type { Filters } from '../../../query/filters.ts'
import type { TimeWindow } from '../../../query/time-window.ts'
import type { ExplorerSearch } from '../../../query/explorer-search.ts'
import { viewQueryOf } from './view-query.ts'
import { refreshViews, useViews, type View, type ViewQuery } from './views.ts'
import { viewLink } from './view-state.ts'
import { ViewVisibility } from './ViewVisibility.tsx'

type SaveProps = {
  onClose: () => void
  search: ExplorerSearch
  filters: Filters
  timeWindow: TimeWindow
  /** Null means all workspaces. */
  workspace: { id: string; name: string } | null
  /** `isLinked` if the link to the view was copied. */
  onSaved: (id: string, options: { isLinked: boolean }) => void
}

/** Without `replaced`, saves a new view. */
type Saving = { replaced?: View; isLinked?: boolean }

/** Saves the current query as a view. */
export function SaveView(props: SaveProps) {
  return (
    <Modal opened onClose={props.onClose} title="Save view" centered>
      <SaveForm {...props} />
    </Modal>
  )
}

function SaveForm({ onClose, search, filters, timeWindow, workspace, onSaved }: SaveProps) {
  const { data: views = [] } = useViews()
  const current = views.find(({ id, mayChange }) => id === search.view && mayChange)
  const query = viewQueryOf(search, filters, timeWindow)
  const [name, setName] = useState('')
  const [visibility, setVisibility] = useState<View['visibility']>('PRIVATE')
  const workspaceId = workspace?.id ?? null
  const clipboard = useClipboard()
  const save = useMutation({
    mutationFn: ({ replaced }: Saving) =>
      unwrap(
        replaced
          ? client.PATCH('/dashboard/explorer/views/{viewId}', {
              params: { path: { viewId: replaced.id } },
              body: { query, workspaceId },
            })
          : client.POST('/dashboard/explorer/views', {
              body: { name: name.trim(), visibility, query, workspaceId },
            }),
      ),
    onSuccess: async ({ id }, { isLinked = false }) => {
      if (isLinked) clipboard.copy(viewLink(id))
      // The page looks the view up in the list.
      await refreshViews()
      onSaved(id, { isLinked })
      onClose()
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (name.trim() !== '') save.mutate({})
      }}
    >
      <Stack>
        {current && (
          <ReplaceView
            name={current.name}
            isBusy={save.isPending}
            onReplace={() => save.mutate({ replaced: current })}
          />
        )}
        <SavedText query={query} />
        <TextInput
          label={current ? 'Or save as a new view' : 'Name'}
          placeholder="Deleted invoices this week"
          maxLength={200}
          autoComplete="off"
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <ViewVisibility
          visibility={visibility}
          onChange={setVisibility}
          workspaceName={workspace?.name ?? null}
        />
        <ErrorBox error={save.error} />
        <SaveButtons
          isReady={name.trim() !== ''}
          isBusy={save.isPending}
          onCancel={onClose}
          onLink={visibility === 'WORKSPACE' ? () => save.mutate({ isLinked: true }) : null}
        />
      </Stack>
    </form>
  )
}

type ButtonsProps = {
  isReady: boolean
  isBusy: boolean
  onCancel: () => void
  /** Null if no other member can open the link. */
  onLink: (() => void) | null
}

function SaveButtons({ isReady, isBusy, onCancel, onLink }: ButtonsProps) {
  return (
    <Group justify="flex-end">
      <Button variant="default" onClick={onCancel}>
        Cancel
      </Button>
      {onLink && (
        <BusyButton variant="default" disabled={!isReady} isBusy={isBusy} onClick={onLink}>
          Save and copy link
        </BusyButton>
      )}
      <BusyButton type="submit" disabled={!isReady} isBusy={isBusy}>
        Save view
      </BusyButton>
    </Group>
  )
}

function SavedText({ query: { range } }: { query: ViewQuery }) {
  const saved =
    range === undefined
      ? 'the exact start and end.'
      : 'a relative range that ends when the view is opened.'
  return (
    <Text size="sm" className="soft">
      Saves the filters, the columns and the time range: {saved}
    </Text>
  )
}

function ReplaceView({
  name,
  isBusy,
  onReplace,
}: {
  name: string
  isBusy: boolean
  onReplace: () => void
}) {
  return (
    <Group justify="space-between" wrap="nowrap">
      <Text size="sm">
        Replace the view <strong>{name}</strong> with the current query
      </Text>
      <BusyButton variant="default" onClick={onReplace} isBusy={isBusy}>
        Replace view
      </BusyButton>
    </Group>
  )
}
