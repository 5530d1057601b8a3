import { Alert, Button, Group, Text } from '@mantine/core'
import { BusyButton } from '../../../parts/BusyButton.tsx'

/** Asks for confirmation before saving an allowlist that excludes the member's own address. */
export function LockoutWarning({
  address,
  forAllCalls,
  isBusy,
  onConfirm,
  onBack,
}: {
  address: string
  forAllCalls: boolean
  isBusy: boolean
  onConfirm: () => void
  onBack: () => void
}) {
  return (
    <Alert
      color="yellow"
      variant="light"
      role="alert"
      title={`Not saved: your current address, ${address}, is not on the list`}
    >
      <Text size="sm" mb="sm">
        {forAllCalls
          ? 'All calls with a key from your address would be rejected.'
          : 'Keys could no longer create or change webhooks from your address. Other calls are not affected.'}{' '}
        If your programs run elsewhere, you can save anyway. Otherwise, add your address first.
      </Text>
      <Group gap="xs">
        <Button size="xs" variant="default" onClick={onBack}>
          Edit list
        </Button>
        <BusyButton size="xs" color="red" onClick={onConfirm} isBusy={isBusy}>
          Save without my address
        </BusyButton>
      </Group>
    </Alert>
  )
}
