import { Button, Skeleton, Text } from '@mantine/core'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import rows from '../../../parts/table/DataTable.module.css'
import { DataTable } from '../../../parts/table/DataTable.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { patchQuery, useOptimisticMutation } from '../../../parts/use-optimistic-mutation.ts'
import {
  type Invitation,
  type Invitations,
  INVITATIONS_KEY,
  refreshMembers,
  roleLabel,
  useInvitations,
} from './members.ts'
import { WorkspaceNames } from '../workspace/WorkspaceNames.tsx'

/** The invitations whose links are still valid. */
export function InvitationList() {
  const invitations = useInvitations()
  const [withdrawn, setWithdrawn] = useState<Invitation | null>(null)
  if (invitations.isPending) return <Skeleton height={44} radius="sm" />
  if (invitations.error) return <ErrorBox error={invitations.error} onRetry={invitations.refetch} />
  return (
    <>
      <InvitationTable open={invitations.data.invitations} onWithdraw={setWithdrawn} />
      <WithdrawDialog
        invitation={withdrawn}
        onClose={() => setWithdrawn(null)}
        onRejected={setWithdrawn}
      />
    </>
  )
}

function InvitationTable({
  open,
  onWithdraw,
}: {
  open: readonly Invitation[]
  onWithdraw: (invitation: Invitation) => void
}) {
  if (open.length === 0) {
    return (
      <Text size="sm" className="soft">
        No open invitations. An invitation link works once and expires after seven days.
      </Text>
    )
  }
  return (
    <DataTable label="Open invitations" columns={['Email', 'Role', 'Access', 'Expires']}>
      {open.map((invitation) => (
        <tr key={invitation.id}>
          <td>
            <span className={rows.name}>{invitation.email}</span>
          </td>
          <td>{roleLabel(invitation.role)}</td>
          <td data-label="Access">
            <WorkspaceNames ids={invitation.workspaceIds} />
          </td>
          <td data-label="Expires">
            <TimeText at={invitation.expiresAt} style="clock" />
          </td>
          <td className={rows.actions}>
            <Gate permission="members.manage" action="withdraw invitations">
              <Button
                size="compact-xs"
                variant="default"
                aria-label={`Withdraw invitation for ${invitation.email}`}
                onClick={() => onWithdraw(invitation)}
              >
                Withdraw
              </Button>
            </Gate>
          </td>
        </tr>
      ))}
    </DataTable>
  )
}

function WithdrawDialog({
  invitation,
  onClose,
  onRejected,
}: {
  invitation: Invitation | null
  onClose: () => void
  /** The withdrawal failed and was rolled back: reopen the dialog, which shows the reason. */
  onRejected: (invitation: Invitation) => void
}) {
  const withdraw = useOptimisticMutation({
    send: ({ id }: Invitation) =>
      unwrap(
        client.DELETE('/dashboard/invitations/{invitationId}', {
          params: { path: { invitationId: id } },
        }),
      ),
    patches: ({ id }) => [
      patchQuery<Invitations>(INVITATIONS_KEY, (data) => ({
        ...data,
        invitations: data.invitations.filter((one) => one.id !== id),
      })),
    ],
    refresh: refreshMembers,
    onRejected,
  })
  const close = () => {
    withdraw.reset()
    onClose()
  }
  return (
    <ConfirmDialog
      isOpen={invitation !== null}
      onClose={close}
      title="Withdraw invitation"
      consequence={`The invitation link for ${invitation?.email ?? ''} stops working. You can invite them again at any time.`}
      name={null}
      action="Withdraw invitation"
      error={withdraw.error}
      onConfirm={() => {
        if (invitation) withdraw.mutate(invitation)
        onClose()
      }}
    />
  )
}
