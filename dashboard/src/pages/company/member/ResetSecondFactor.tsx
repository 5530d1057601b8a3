import { useMutation } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { type Member, refreshMembers } from './members.ts'

/** For a member who lost their authenticator app and their recovery codes. */
export function ResetSecondFactor({
  member: { id, email },
  isOpen,
  onClose,
}: {
  member: Member
  isOpen: boolean
  onClose: () => void
}) {
  const reset = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/members/{userId}/reset-second-factor', {
          params: { path: { userId: id } },
        }),
      ),
    onSuccess: async () => {
      onClose()
      await refreshMembers()
    },
  })
  return (
    <ConfirmDialog
      isOpen={isOpen}
      onClose={onClose}
      title="Reset second factor"
      consequence={`${email} is signed out immediately, and can then sign in with their password alone. First make sure that the request really comes from them.`}
      name={email}
      action="Reset second factor"
      isBusy={reset.isPending}
      error={reset.error}
      onConfirm={() => reset.mutate()}
    />
  )
}
