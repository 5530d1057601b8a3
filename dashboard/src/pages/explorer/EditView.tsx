import { Button, Group, Modal, Stack, TextInput } from '@mantine/core'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { sketchOf, useOptimistic, withChanged } from '../../parts/use-optimistic.ts'
import { useSigned } from '../../shell/session-context.tsx'
import { refreshViews, type View, VIEWS_KEY } from './views.ts'
import { ViewVisibility } from './ViewVisibility.tsx'

/** What is changed about a view; what it asks for is replaced by saving another question. */
type Wish = Pick<View, 'name' | 'visibility'>

type EditProps = {
  /** Null: none is changed. */
  view: View | null
  onClose: () => void
  /** It is as it was: asks again, with the reason. */
  onRefused: (view: View) => void
}

/** Another name for a view, and who sees it. */
export function EditView({ view, onClose, onRefused }: EditProps) {
  const edit = useOptimistic({
    send: ({ view: { id }, wish }: { view: View; wish: Wish }) =>
      unwrap(
        client.PATCH('/dashboard/explorer/views/{viewId}', {
          params: { path: { viewId: id } },
          body: wish,
        }),
      ),
    sketch: ({ view: { id }, wish }) => [
      sketchOf<View[]>(VIEWS_KEY, (views) => withChanged(views, id, wish)),
    ],
    refresh: refreshViews,
    onRefused: (refused) => onRefused(refused.view),
  })
  const close = () => {
    edit.reset()
    onClose()
  }
  return (
    <Modal opened={view !== null} onClose={close} title="Change a view" centered>
      {view && (
        <EditForm
          view={view}
          wish={edit.error ? edit.variables.wish : view}
          error={edit.error}
          onClose={close}
          onSave={(wish) => {
            edit.mutate({ view, wish })
            onClose()
          }}
        />
      )}
    </Modal>
  )
}

type FormProps = {
  view: View
  /** What the form begins with. */
  wish: Wish
  error: Error | null
  onClose: () => void
  onSave: (wish: Wish) => void
}

function EditForm({ view, wish, error, onClose, onSave }: FormProps) {
  const { session } = useSigned()
  const [name, setName] = useState(wish.name)
  const [visibility, setVisibility] = useState(wish.visibility)
  const isChange =
    name.trim() !== '' && (name.trim() !== view.name || visibility !== view.visibility)
  const workspace = session.workspaces.find(({ id }) => id === view.workspaceId)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isChange) onSave({ name: name.trim(), visibility })
      }}
    >
      <Stack>
        <TextInput
          label="Name"
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
        <ErrorBox error={error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <BusyButton type="submit" isBusy={false} disabled={!isChange}>
            Save
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}
