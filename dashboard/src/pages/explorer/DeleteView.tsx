import { useMutation } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx'
import { refreshViews, type View } from './views.ts'

/** Asks before a view goes; null: none is to go. */
export function DeleteView({
  view,
  onClose,
  onDeleted,
}: {
  view: View | null
  onClose: () => void
  onDeleted: (id: string) => void
}) {
  const remove = useMutation({
    mutationFn: async ({ id }: View) => {
      const params = { path: { viewId: id } }
      await unwrap(client.DELETE('/dashboard/explorer/views/{viewId}', { params }))
      return id
    },
    onSuccess: async (id) => {
      onDeleted(id)
      onClose()
      await refreshViews()
    },
  })
  return (
    <ConfirmDialog
      isOpen={view !== null}
      onClose={onClose}
      title={`Delete the view ${view?.name ?? ''}?`}
      consequence={
        view?.visibility === 'WORKSPACE'
          ? 'It is gone for everybody who sees it. No event is touched.'
          : 'It is gone from your list. No event is touched.'
      }
      name={view?.name ?? null}
      action="Delete"
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() => view && remove.mutate(view)}
    />
  )
}
