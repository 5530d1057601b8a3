import { Skeleton, Text } from '@mantine/core'
import { useState } from 'react'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { useCompany } from '../../company/company.ts'
import { AllowlistEditor } from './AllowlistEditor.tsx'

/** The addresses from which keys, and the dashboard, can be used. */
export function AllowlistPanel() {
  const company = useCompany()
  const [isSaved, setSaved] = useState(false)
  return (
    <>
      <Text size="sm" className="soft" maw={640} mb="sm">
        To create or change a webhook with a key, the caller’s address must be on this list. You can
        also apply the list to all calls with a key, and to members who use the dashboard.
      </Text>
      <ErrorBox error={company.error} />
      {company.isPending && <Skeleton height={240} maw={640} radius="sm" />}
      {company.data?.allowlist && (
        <AllowlistEditor
          allowlist={company.data.allowlist}
          address={company.data.address}
          isSaved={isSaved}
          onSaved={setSaved}
          // Resets the form when the stored list changes, so that the member sees it before saving.
          key={JSON.stringify(company.data.allowlist)}
        />
      )}
    </>
  )
}
