import { Button, Group, Modal, SimpleGrid, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import { Gate } from '../../../parts/Gate.tsx'
import { fromInputTime, toInputTime } from '../../../parts/time/input-time.ts'
import { useTimeZone } from '../../../parts/time/time-zone.ts'
import { TimeInput } from '../../../parts/time/TimeInput.tsx'
import { ENABLE_FIRST } from './delivery-text.ts'
import { refreshWebhook } from '../WebhookActions.tsx'

const HOUR_MS = 3_600_000

export function ResendEvents({
  webhookId,
  isDisabled,
}: {
  webhookId: string
  /** The webhook is disabled. */
  isDisabled: boolean
}) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Gate
        permission="webhooks.manage"
        action="redeliver events"
        otherReason={isDisabled ? ENABLE_FIRST : null}
      >
        <Button size="xs" variant="default" onClick={() => setOpen(true)}>
          Resend missed events
        </Button>
      </Gate>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Resend missed events" centered>
        {isOpen && <ResendForm webhookId={webhookId} />}
      </Modal>
    </>
  )
}

function ResendForm({ webhookId }: { webhookId: string }) {
  const timeZone = useTimeZone()
  const [from, setFrom] = useState(() => toInputTime(Date.now() - 24 * HOUR_MS))
  const [to, setTo] = useState(() => toInputTime(Date.now() + 60_000))
  const send = useMutation({
    mutationFn: () => resendAll(webhookId, { from, to }),
    onSettled: () => refreshWebhook(webhookId),
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        send.mutate()
      }}
    >
      <Stack>
        <Text size="sm">
          For events received in this period, Annals resends failed deliveries and sends events that
          arrived while the webhook was disabled. Successful deliveries are not repeated.
        </Text>
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TimeInput label="From" value={from} onChange={setFrom} isRequired />
          <TimeInput label="To" value={to} onChange={setTo} isRequired />
        </SimpleGrid>
        <Text size="xs" className="soft">
          Time zone: {timeZone}
        </Text>
        <ErrorBox error={send.error} />
        {send.data && (
          <Text size="sm" role="status">
            {formatCount(send.data.redelivered)} resent, {formatCount(send.data.made)} sent for the
            first time
          </Text>
        )}
        <Group justify="flex-end">
          <BusyButton type="submit" isBusy={send.isPending}>
            Resend events
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}

/** The service accepts at most 10,000 per call and returns where to continue. */
async function resendAll(webhookId: string, window: { from: string; to: string }) {
  const to = fromInputTime(window.to) ?? ''
  let from = fromInputTime(window.from)
  let redelivered = 0
  let made = 0
  while (from !== null) {
    const result: { redelivered: number; made: number; continueFrom: string | null } = await unwrap(
      client.POST('/dashboard/webhooks/{webhookId}/redeliver', {
        params: { path: { webhookId } },
        body: { from, to },
      }),
    )
    redelivered += result.redelivered
    made += result.made
    from = result.continueFrom
  }
  return { redelivered, made }
}
