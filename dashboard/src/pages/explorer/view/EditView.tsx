import { Button, Group, Modal, Stack, TextInput } from '@mantine/core'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import {
  patchQuery,
  useOptimisticMutation,
  withChanged,
} from '../../../parts/use-optimistic-mutation.ts'
import { useSession } from '../../../api/session-context.tsx'
import { refreshViews, type View, VIEWS_KEY } from './views.ts'
import { ViewVisibility } from './ViewVisibility.tsx'

/** The properties that this dialog edits. To change the query of a view, save over it. */
type ViewChanges = Pick<View, 'name' | 'visibility'>

type EditProps = {
  /** Null closes the dialog. */
  view: View | null
  onClose: () => void
  /** The change failed and was rolled back: reopen the dialog, which shows the reason. */
  onRejected: (view: View) => void
}

/** Edits the name and the visibility of a view. */
export function EditView({ view, onClose, onRejected }: EditProps) {
  const edit = useOptimisticMutation({
    send: ({ view: { id }, changes }: { view: View; changes: ViewChanges }) =>
      unwrap(
        client.PATCH('/dashboard/explorer/views/{viewId}', {
          params: { path: { viewId: id } },
          body: changes,
        }),
      ),
    patches: ({ view: { id }, changes }) => [
      patchQuery<View[]>(VIEWS_KEY, (views) => withChanged(views, id, changes)),
    ],
    refresh: refreshViews,
    onRejected: (rejected) => onRejected(rejected.view),
  })
  const close = () => {
    edit.reset()
    onClose()
  }
  return (
    <Modal opened={view !== null} onClose={close} title="Edit view" centered>
      {view && (
        <EditForm
          view={view}
          changes={edit.error ? edit.variables.changes : view}
          error={edit.error}
          onClose={close}
          onSave={(changes) => {
            edit.mutate({ view, changes })
            onClose()
          }}
        />
      )}
    </Modal>
  )
}

type FormProps = {
  view: View
  /** The initial values of the form. */
  changes: ViewChanges
  error: Error | null
  onClose: () => void
  onSave: (changes: ViewChanges) => void
}

function EditForm({ view, changes, error, onClose, onSave }: FormProps) {
  const { session } = useSession()
  const [name, setName] = useState(changes.name)
  const [visibility, setVisibility] = useState(changes.visibility)
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
            Save view
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}
