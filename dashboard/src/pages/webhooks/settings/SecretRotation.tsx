import { Group, NumberInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { SecretBox } from '../../../parts/dialog/SecretBox.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { pluralize } from '../../../parts/text/pluralize.ts'
import { SECRET_LABEL_NOTE, SECRET_STORAGE_NOTE } from '../delivery/delivery-text.ts'
import type { Webhook } from '../webhook-types.ts'
import { refreshWebhook } from '../WebhookActions.tsx'

type RotationOptions = { hours: number | string; label: string }

/** Starts a rotation of the signing secret, or finishes the one in progress. */
export function SecretRotation({ webhook: { id, nextSecretAt } }: { webhook: Webhook }) {
  const [options, setOptions] = useState<RotationOptions>({ hours: 24, label: '' })
  const [isConfirming, setConfirming] = useState(false)
  const { rotate, finish } = useRotation(id, options)
  return (
    <section>
      <Title order={2} mb={4}>
        Signing secret
      </Title>
      <Stack gap="xs">
        {rotate.data && (
          <SecretBox
            label="New signing secret"
            secret={rotate.data.secret}
            storageNote={SECRET_STORAGE_NOTE}
          >
            <Text size="sm">Use the whole secret as the HMAC key, including whsec_.</Text>
          </SecretBox>
        )}
        {nextSecretAt ? (
          <Text size="sm">
            Rotation in progress. Until <TimeText at={nextSecretAt} style="clock" />,
            x-service-signature uses the old secret, and webhook-signature contains both signatures.
          </Text>
        ) : (
          <RotationFields options={options} onChange={setOptions} />
        )}
        <ErrorBox error={finish.error} />
        <Group>
          <Gate permission="webhooks.manage" action="rotate secrets">
            {nextSecretAt ? (
              <BusyButton size="xs" isBusy={finish.isPending} onClick={() => finish.mutate()}>
                Finish rotation
              </BusyButton>
            ) : (
              <BusyButton size="xs" isBusy={rotate.isPending} onClick={() => setConfirming(true)}>
                Rotate secret
              </BusyButton>
            )}
          </Gate>
        </Group>
      </Stack>
      <ConfirmDialog
        isOpen={isConfirming}
        onClose={() => setConfirming(false)}
        title="Rotate secret"
        consequence={consequenceOf(options)}
        name={null}
        action="Rotate secret"
        isBusy={rotate.isPending}
        error={rotate.error}
        onConfirm={() => rotate.mutate(undefined, { onSuccess: () => setConfirming(false) })}
      />
    </section>
  )
}

function consequenceOf({ hours }: RotationOptions): string {
  const when = Number(hours) > 0 ? `After ${pluralize(Number(hours), 'hour')}` : 'Immediately'
  return `Annals creates a new secret and shows it once. ${when}, it signs deliveries only with the new secret, and your receiver rejects them until it has it.`
}

function useRotation(webhookId: string, { hours, label }: RotationOptions) {
  const params = { path: { webhookId } }
  const rotate = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/webhooks/{webhookId}/rotate-secret', {
          params,
          body: {
            overlapSeconds: Math.round(Number(hours) * 3_600),
            ...(label !== '' && { secretLabel: label }),
          },
        }),
      ),
    onSuccess: () => refreshWebhook(webhookId),
  })
  const finish = useMutation({
    mutationFn: () =>
      unwrap(client.POST('/dashboard/webhooks/{webhookId}/finish-rotation', { params })),
    onSuccess: () => refreshWebhook(webhookId),
  })
  return { rotate, finish }
}

function RotationFields({
  options,
  onChange,
}: {
  options: RotationOptions
  onChange: (options: RotationOptions) => void
}) {
  return (
    <>
      <TextInput
        label="Label of the new secret"
        description={SECRET_LABEL_NOTE}
        maxLength={64}
        value={options.label}
        onChange={(event) => onChange({ ...options, label: event.currentTarget.value })}
      />
      <NumberInput
        label="Keep accepting the old secret for (hours)"
        description="With 0, the old secret is replaced immediately, and your receiver rejects deliveries until it has the new one."
        min={0}
        max={168}
        value={options.hours}
        onChange={(hours) => onChange({ ...options, hours })}
      />
    </>
  )
}
