import { Skeleton, Text } from '@mantine/core'
import { useState } from 'react'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { useCompany } from '../company/company.ts'
import { AllowlistEditor } from './AllowlistEditor.tsx'

/** The addresses from which keys can be used. */
export function AllowlistPanel() {
  const company = useCompany()
  const [isSaved, setSaved] = useState(false)
  return (
    <>
      <Text size="sm" className="soft" maw={640} mb="sm">
        Changing webhooks with a key needs an address on this list. With the switch below, every
        call with every key does. The dashboard itself does not look at it, so you cannot lock
        yourself out of here.
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
          key={`${company.data.allowlist.entries.join()} ${company.data.allowlist.forAllCalls}`}
        />
      )}
    </>
  )
}
