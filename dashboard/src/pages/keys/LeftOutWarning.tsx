import { Alert, Button, Group, Text } from '@mantine/core'
import { BusyButton } from '../../parts/BusyButton.tsx'

/** Asks for confirmation before saving an allowlist that excludes the member's own address. */
export function LeftOutWarning({
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
      title={`Not saved yet: ${address}, your address now, is not on the list`}
    >
      <Text size="sm" mb="sm">
        {forAllCalls
          ? 'Programs that run where you are would be refused, whatever they call and whichever key they use.'
          : 'From where you are, webhooks could not be changed with a key any more. Other calls are not affected.'}{' '}
        Right when your programs run elsewhere; otherwise add your address first.
      </Text>
      <Group gap="xs">
        <Button size="xs" variant="default" onClick={onBack}>
          Change the list
        </Button>
        <BusyButton size="xs" color="red" onClick={onConfirm} isBusy={isBusy}>
          Save it without my address
        </BusyButton>
      </Group>
    </Alert>
  )
}
