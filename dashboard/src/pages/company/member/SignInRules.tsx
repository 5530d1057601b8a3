import { Switch } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { COMPANY_KEY, useCompany } from '../company.ts'
import type { Member } from './members.ts'
import { pluralize } from '../../../parts/text/pluralize.ts'

/** Whether every member needs a second factor. Only owners can change it. */
export function SignInRules({ members }: { members: readonly Member[] }) {
  const company = useCompany()
  const [isConfirming, setConfirming] = useState(false)
  const change = useMutation({
    mutationFn: (requiresSecondFactor: boolean) =>
      unwrap(client.PUT('/dashboard/company/sign-in', { body: { requiresSecondFactor } })),
    onSuccess: (result) => {
      queryClient.setQueryData(COMPANY_KEY, result)
      void queryClient.invalidateQueries({ queryKey: ['second-factor'] })
      setConfirming(false)
    },
  })
  if (!company.data) return null
  const isRequired = company.data.requiresSecondFactor
  const missing = members.filter(({ hasSecondFactor }) => !hasSecondFactor).length
  return (
    <>
      <Gate permission="security.manage" action="change how members sign in">
        <Switch
          mb="md"
          label="Require a second factor of all members"
          checked={isRequired}
          onChange={() => {}}
          onClick={() => {
            change.reset()
            setConfirming(true)
          }}
        />
      </Gate>
      <ConfirmDialog
        isOpen={isConfirming}
        onClose={() => setConfirming(false)}
        title={isRequired ? 'Make the second factor optional' : 'Require a second factor'}
        consequence={
          isRequired
            ? 'Members can then turn off their second factor and sign in with their password alone.'
            : consequenceFor(missing)
        }
        name={null}
        action={isRequired ? 'Make it optional' : 'Require second factor'}
        isBusy={change.isPending}
        error={change.error}
        onConfirm={() => change.mutate(!isRequired)}
      />
    </>
  )
}

function consequenceFor(missing: number): string {
  const who =
    missing === 0
      ? 'All members have a second factor. New members'
      : `${pluralize(missing, 'member')} without a second factor, and new members,`
  return `${who} can do nothing else until they set it up, even in sessions that are already open. Keys are not affected.`
}
