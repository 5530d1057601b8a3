import { Button, Group, Modal, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { bodyOf, type Draft, draftOf, missingIn, newDraft } from './draft.ts'
import { ExportFields } from './ExportFields.tsx'
import { ExportName, nameBody } from '../list/ExportName.tsx'
import { createExport, type Export, type ExportBody, refreshExports } from '../exports.ts'
import { CreatedExport } from './CreatedExport.tsx'
import classes from './NewExport.module.css'
import { Preflight } from './Preflight.tsx'
import { SaveTemplate } from '../template/SaveTemplate.tsx'
import { usePreflight } from './use-preflight.ts'

type NewExportProps = {
  isOpen: boolean
  /** The initial values of the form. Null for an empty form. */
  start: ExportBody | null
  onClose: () => void
  onCreated?: (job: Export) => void
  /** Called when a download starts, so that the list can poll its progress. */
  onDownload?: () => void
}

/** Creates an export, and shows the estimated size first. */
export function NewExport(props: NewExportProps) {
  const { isOpen, onClose } = props
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title="Create export"
      size="lg"
      closeOnClickOutside={false}
    >
      {isOpen && <NewForm {...props} />}
    </Modal>
  )
}

function NewForm({ start, onClose, onCreated, onDownload }: NewExportProps) {
  const { workspace } = useSession()
  const [draft, setDraft] = useState<Draft>(() =>
    start ? draftOf(start) : newDraft(workspace?.id ?? null),
  )
  const [name, setName] = useState(start?.name ?? '')
  const [isNaming, naming] = useDisclosure(false)
  const [savedName, setSavedName] = useState<string | null>(null)
  const preflight = usePreflight(draft)
  const create = useMutation({
    mutationFn: () => createExport({ ...nameBody(name), ...bodyOf(draft) }),
    onSuccess: async (job) => {
      onCreated?.(job)
      await refreshExports()
    },
  })
  if (create.data) {
    return (
      <CreatedExport
        job={create.data}
        preflight={preflight.data}
        onClose={onClose}
        onDownload={() => onDownload?.()}
      />
    )
  }
  const missing = missingIn(draft)
  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (missing === null) create.mutate()
        }}
      >
        <Stack>
          <ExportName value={name} onChange={setName} />
          <ExportFields draft={draft} onChange={setDraft} />
          <Preflight missing={missing} preflight={preflight} />
          <ErrorBox error={create.error} />
          <Text size="sm" role="status" c="var(--good)" className={classes.saved}>
            {savedName !== null && `Template “${savedName}” saved`}
          </Text>
          <Group justify="space-between" gap="xs">
            <Gate permission="templates.manage" action="save templates">
              <Button variant="subtle" px="xs" disabled={missing !== null} onClick={naming.open}>
                Save as template…
              </Button>
            </Gate>
            <Group gap="xs">
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <BusyButton type="submit" disabled={missing !== null} isBusy={create.isPending}>
                Create export
              </BusyButton>
            </Group>
          </Group>
        </Stack>
      </form>
      <SaveTemplate
        name={name.trim()}
        body={bodyOf(draft)}
        isOpen={isNaming}
        onClose={naming.close}
        onSaved={setSavedName}
      />
    </>
  )
}
