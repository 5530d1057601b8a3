import { Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { DisabledReason } from '../../parts/DisabledReason.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { SecretDialog } from '../../parts/dialog/SecretDialog.tsx'
import { StatusText } from '../../parts/text/StatusText.tsx'
import { TimeText } from '../../parts/time/TimeText.tsx'
import { Enrollment } from './Enrollment.tsx'
import { FactorForm } from './FactorForm.tsx'
import { RecoveryCodes } from './RecoveryCodes.tsx'
import { refreshSecondFactor, useSecondFactor } from './second-factor.ts'

type Dialog = 'enroll' | 'codes' | 'disable'

const TITLES: Record<Dialog, string> = {
  enroll: 'Set up second factor',
  codes: 'Create new recovery codes',
  disable: 'Turn off second factor',
}

/** The member's own second factor. */
export function SecondFactorSection() {
  const factor = useSecondFactor()
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const close = () => setDialog(null)
  return (
    <section aria-labelledby="second-factor">
      <Title order={2} id="second-factor" mb="xs">
        Second factor
      </Title>
      <ErrorBox error={factor.error} onRetry={factor.refetch} />
      {factor.isPending && <Skeleton height={64} radius="sm" />}
      {factor.data?.enabledAt === null && <Missing onStart={() => setDialog('enroll')} />}
      {factor.data && factor.data.enabledAt !== null && (
        <Present {...factor.data} enabledAt={factor.data.enabledAt} onOpen={setDialog} />
      )}
      <SecretDialog
        isOpen={dialog !== null}
        onClose={close}
        title={dialog === null ? '' : TITLES[dialog]}
      >
        {dialog === 'enroll' && <Enrollment onDone={close} />}
        {dialog === 'codes' && <NewCodes onClose={close} />}
        {dialog === 'disable' && <Disable onClose={close} />}
      </SecretDialog>
    </section>
  )
}

function Missing({ onStart }: { onStart: () => void }) {
  return (
    <Stack gap="xs" align="flex-start">
      <Text size="sm" component="div">
        <StatusText tone="neutral">Off</StatusText>
      </Text>
      <Text size="sm">
        With a second factor, signing in takes your password and a code from an app on your phone. A
        stolen password alone is then useless.
      </Text>
      <Button size="xs" onClick={onStart}>
        Set up second factor
      </Button>
    </Stack>
  )
}

function Present({
  enabledAt,
  recoveryCodesLeft,
  isRequired,
  onOpen,
}: {
  enabledAt: string
  recoveryCodesLeft: number
  isRequired: boolean
  onOpen: (dialog: Dialog) => void
}) {
  return (
    <Stack gap="xs" align="flex-start">
      <Text size="sm" component="div">
        <StatusText tone="good">On</StatusText>
      </Text>
      <Text size="sm">
        Since <TimeText at={enabledAt} style="day" />. Recovery codes left: {recoveryCodesLeft} of
        10.
      </Text>
      <Group gap="xs">
        <Button size="xs" variant="default" onClick={() => onOpen('codes')}>
          Create new recovery codes
        </Button>
        <DisabledReason reason={isRequired ? 'Your company requires a second factor.' : null}>
          <Button size="xs" variant="default" onClick={() => onOpen('disable')}>
            Turn off second factor
          </Button>
        </DisabledReason>
      </Group>
    </Stack>
  )
}

function NewCodes({ onClose }: { onClose: () => void }) {
  const [codes, setCodes] = useState<readonly string[] | null>(null)
  if (codes) {
    const finish = () => {
      onClose()
      void refreshSecondFactor()
    }
    return <RecoveryCodes codes={codes} onDone={finish} />
  }
  return (
    <FactorForm
      consequence="Your current recovery codes stop working."
      action="Create new recovery codes"
      send={(body) => unwrap(client.POST('/dashboard/second-factor/recovery-codes', { body }))}
      onDone={({ recoveryCodes }) => setCodes(recoveryCodes)}
      onClose={onClose}
    />
  )
}

function Disable({ onClose }: { onClose: () => void }) {
  return (
    <FactorForm
      consequence="Your password alone is then enough to sign in. Your recovery codes stop working."
      action="Turn off second factor"
      isDanger
      send={(body) => unwrap(client.POST('/dashboard/second-factor/disable', { body }))}
      onDone={() => {
        onClose()
        void refreshSecondFactor()
      }}
      onClose={onClose}
    />
  )
}
