import { Button, Group, Modal, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { bodyOf, draftOf, missingIn } from '../form/draft.ts'
import { ExportFields } from '../form/ExportFields.tsx'
import { Preflight } from '../form/Preflight.tsx'
import { changeTemplate, type Template } from './templates.ts'
import { usePreflight } from '../form/use-preflight.ts'

type EditProps = { template: Template; isOpen: boolean; onClose: () => void }

export function EditTemplate({ template, isOpen, onClose }: EditProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title="Edit template"
      size="lg"
      closeOnClickOutside={false}
    >
      {isOpen && <EditForm template={template} onClose={onClose} />}
    </Modal>
  )
}

function EditForm({ template, onClose }: Omit<EditProps, 'isOpen'>) {
  const [name, setName] = useState(template.name)
  const [draft, setDraft] = useState(() => draftOf(template.body))
  const preflight = usePreflight(draft)
  const missing = missingIn(draft)
  const save = useMutation({
    mutationFn: () => changeTemplate(template.id, { name: name.trim(), body: bodyOf(draft) }),
    onSuccess: onClose,
  })
  const isReady = missing === null && name.trim() !== ''
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady) save.mutate()
      }}
    >
      <Stack>
        <TextInput
          label="Name"
          required
          maxLength={200}
          autoComplete="off"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <ExportFields draft={draft} onChange={setDraft} />
        <Preflight missing={missing} preflight={preflight} />
        <ErrorBox error={save.error} />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <BusyButton type="submit" disabled={!isReady} isBusy={save.isPending}>
            Save template
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}
