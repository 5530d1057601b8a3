import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { responseText, DELIVERY_LABELS } from '../delivery/delivery-text.ts'
import type { DeliveryDetail } from '../webhook-types.ts'

const POLL_MS = 500
/** One minute. After that the list of deliveries says more. */
const POLLS_MAX = 120

/** The result of a test delivery, as soon as its first attempt has ended. */
export function TestResult({
  webhookId,
  deliveryId,
  onEnd,
}: {
  webhookId: string
  deliveryId: string
  /** Called so that other lists of deliveries are reloaded. */
  onEnd: () => void
}) {
  const { data: delivery } = useQuery({
    queryKey: ['test-delivery', webhookId, deliveryId],
    queryFn: () => {
      const params = { path: { webhookId, deliveryId } }
      return unwrap(
        client.GET('/dashboard/webhooks/{webhookId}/deliveries/{deliveryId}', { params }),
      )
    },
    refetchInterval: ({ state }) =>
      hasEnded(state.data) || state.dataUpdateCount >= POLLS_MAX ? false : POLL_MS,
  })
  const isOver = hasEnded(delivery)
  useEffect(() => {
    if (isOver) onEnd()
    // Runs once per test, not once per render.
  }, [isOver, deliveryId])
  if (!delivery || !isOver) return 'Sending test delivery…'
  const { tone } = DELIVERY_LABELS[delivery.status]
  return <StatusText tone={tone}>{outcomeText(delivery)}</StatusText>
}

function hasEnded(delivery: DeliveryDetail | undefined): boolean {
  return delivery !== undefined && delivery.status !== 'PENDING' && delivery.status !== 'SENDING'
}

function outcomeText(delivery: DeliveryDetail): string {
  const answer = responseText(delivery)
  const what = answer === null ? '' : `, ${answer}`
  if (delivery.status === 'SUCCEEDED') return `Test succeeded${what}`
  return `Test failed${what}${delivery.status === 'RETRY_SCHEDULED' ? ', retry scheduled' : ''}`
}
