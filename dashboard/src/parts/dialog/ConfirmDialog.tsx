import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useState } from 'react'
import { BusyButton } from '../BusyButton.tsx'
import { ErrorBox } from '../message/ErrorBox.tsx'

type ConfirmProps = {
  isOpen: boolean
  onClose: () => void
  title: string
  /** The consequence, as a sentence. */
  consequence: string
  /** The name to type before the button is enabled. Null if a click is enough. */
  name: string | null
  action: string
  /** Omitted for optimistic changes, which show immediately. */
  isBusy?: boolean
  error: Error | null
  onConfirm: () => void
}

/** Confirms an action that can't be undone. */
export function ConfirmDialog(props: ConfirmProps) {
  const { isOpen, onClose, title } = props
  return (
    <Modal opened={isOpen} onClose={onClose} title={title} centered>
      {isOpen && <ConfirmForm {...props} />}
    </Modal>
  )
}

function ConfirmForm({
  consequence,
  name,
  action,
  isBusy = false,
  error,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const isConfirmed = name === null || typed === name
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isConfirmed) onConfirm()
      }}
    >
      <Stack>
        <Text size="sm">{consequence}</Text>
        {name !== null && (
          <TextInput
            label={`Type ${name} to confirm`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
        )}
        <ErrorBox error={error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Go back
          </Button>
          <BusyButton type="submit" color="red" disabled={!isConfirmed} isBusy={isBusy}>
            {action}
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}
