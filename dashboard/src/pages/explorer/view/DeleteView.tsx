import { client, unwrap } from '../../../api/client.ts'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { patchQuery, useOptimisticMutation } from '../../../parts/use-optimistic-mutation.ts'
import { refreshViews, type View, VIEWS_KEY } from './views.ts'

/** Confirms the deletion of a view. Closed if `view` is null. */
export function DeleteView({
  view,
  onClose,
  onDeleted,
  onRejected,
}: {
  view: View | null
  onClose: () => void
  onDeleted: (id: string) => void
  /** The deletion failed and was rolled back: reopen the dialog, which shows the reason. */
  onRejected: (view: View) => void
}) {
  const remove = useOptimisticMutation({
    send: ({ id }: View) =>
      unwrap(
        client.DELETE('/dashboard/explorer/views/{viewId}', { params: { path: { viewId: id } } }),
      ),
    patches: ({ id }) => [
      patchQuery<View[]>(VIEWS_KEY, (views) => views.filter((one) => one.id !== id)),
    ],
    refresh: refreshViews,
    onDone: ({ id }) => onDeleted(id),
    onRejected,
  })
  const close = () => {
    remove.reset()
    onClose()
  }
  return (
    <ConfirmDialog
      isOpen={view !== null}
      onClose={close}
      title={`Delete view ${view?.name ?? ''}?`}
      consequence={
        view?.visibility === 'WORKSPACE'
          ? 'This deletes the view for everyone it is shared with. Events are not affected.'
          : 'This deletes the view from your list. Events are not affected.'
      }
      name={view?.name ?? null}
      action="Delete view"
      error={remove.error}
      onConfirm={() => {
        if (view) remove.mutate(view)
        onClose()
      }}
    />
  )
}
