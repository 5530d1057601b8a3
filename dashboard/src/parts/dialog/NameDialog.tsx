import { Button, Group, Modal, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { BusyButton } from '../BusyButton.tsx'
import { ErrorBox } from '../message/ErrorBox.tsx'

const NAME_LENGTH_MAX = 200

type NameProps = {
  isOpen: boolean
  onClose: () => void
  title: string
  label: string
  description?: string
  /** The current name. Omitted for something new. */
  name?: string
  /** A name to start with, which can be saved as it is. */
  suggestion?: string
  action: string
  /** Saves the name. If it returns a promise, the dialog waits and shows a failure beside the field. */
  onSave: (name: string) => unknown
}

/** Asks for the name of something new, or for a new name. */
export function NameDialog(props: NameProps) {
  const { isOpen, onClose, title } = props
  return (
    <Modal opened={isOpen} onClose={onClose} title={title} centered>
      {isOpen && <NameForm {...props} />}
    </Modal>
  )
}

function NameForm({
  label,
  description,
  name = '',
  suggestion = name,
  action,
  onSave,
  onClose,
}: NameProps) {
  const [typed, setTyped] = useState(suggestion)
  const save = useMutation({
    mutationFn: async () => await onSave(typed.trim()),
    onSuccess: onClose,
  })
  const isChange = typed.trim() !== '' && typed.trim() !== name
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isChange) save.mutate()
      }}
    >
      <Stack>
        <TextInput
          label={label}
          description={description}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          maxLength={NAME_LENGTH_MAX}
          autoComplete="off"
          data-autofocus
        />
        <ErrorBox error={save.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <BusyButton type="submit" disabled={!isChange} isBusy={save.isPending}>
            {action}
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}
