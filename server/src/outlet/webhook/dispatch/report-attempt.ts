import type { Logger } from '../../../platform/logger.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import type { Settlement } from './settlement.ts'

/** Counts and logs an attempt. */
export function reportAttempt(
  { webhookId, deliveryId, status, record }: Settlement,
  { metrics, logger }: { metrics: Metrics; logger: Logger },
): void {
  const { attempt, errorClass, responseStatus, durationMs } = record
  metrics.deliveryAttempts.inc({
    result: status === 'SUCCEEDED' ? 'accepted' : (errorClass ?? 'none'),
  })
  metrics.deliverySeconds.observe(durationMs / 1_000)
  const line = { webhookId, deliveryId, attempt, responseStatus, errorClass, durationMs }
  if (status === 'SUCCEEDED') logger.debug({ event: 'delivery.accepted', ...line })
  else logger.info({ event: 'delivery.refused', ...line })
}
