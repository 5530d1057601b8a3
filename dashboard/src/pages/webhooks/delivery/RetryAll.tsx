import { Button, Modal } from '@mantine/core'
import { lazy, Suspense, useState } from 'react'
import { whenConnected } from '../../../api/when-connected.ts'
import { Gate } from '../../../parts/Gate.tsx'
import { ENABLE_FIRST } from './delivery-text.ts'
import type { DeliveryStatus, Webhook } from '../webhook-types.ts'

const RetryForm = lazy(
  whenConnected(async () => ({ default: (await import('./RetryForm.tsx')).RetryForm })),
)

/** Why deliveries with a status aren't retried. */
const NOT_RETRYABLE: Partial<Record<DeliveryStatus, string>> = {
  PENDING: 'Pending deliveries are already queued.',
  SENDING: 'These deliveries are being sent.',
  SUCCEEDED: 'These deliveries succeeded. Choose failed deliveries or those that wait for a retry.',
}

/** Retries the deliveries that failed or wait for a retry, or those with the status of the filter. */
export function RetryAll({
  webhook: { id: webhookId, status },
  filter,
}: {
  webhook: Webhook
  filter: DeliveryStatus | null
}) {
  const [isOpen, setOpen] = useState(false)
  const close = () => setOpen(false)
  const reason = filter === null ? null : (NOT_RETRYABLE[filter] ?? null)
  return (
    <>
      <Gate
        permission="webhooks.manage"
        action="retry deliveries"
        otherReason={status === 'DISABLED' ? ENABLE_FIRST : reason}
      >
        <Button size="xs" variant="default" onClick={() => setOpen(true)}>
          Retry all now
        </Button>
      </Gate>
      <Modal opened={isOpen} onClose={close} title="Retry deliveries now" centered>
        {isOpen && (
          <Suspense>
            <RetryForm webhookId={webhookId} filter={filter} onClose={close} />
          </Suspense>
        )}
      </Modal>
    </>
  )
}
