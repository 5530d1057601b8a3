import { client, unwrap } from '../../../api/client.ts'
import type { paths } from '../../../api/schema.d.ts'
import { responseText } from './delivery-text.ts'
import type { DeliveryStatus } from '../webhook-types.ts'

type Retry = paths['/dashboard/webhooks/{webhookId}/retry']
export type RetryPreview = Retry['get']['responses'][200]['content']['application/json']
export type RetryProgress = { queued: number; archived: number }

const STATUSES = ['RETRY_SCHEDULED', 'FAILED'] as const

/** The previewed deliveries that the filter includes, by status and by last response. */
export function retryCounts(preview: RetryPreview, filter: DeliveryStatus | null) {
  const groups = preview.groups.filter(({ status }) => filter === null || status === filter)
  const byText = new Map<string, number>()
  const counts = { FAILED: 0, RETRY_SCHEDULED: 0 }
  for (const { status, count, ...answer } of groups) {
    counts[status] += count
    const text = responseText(answer) ?? 'no response'
    byText.set(text, (byText.get(text) ?? 0) + count)
  }
  return {
    failed: counts.FAILED,
    waiting: counts.RETRY_SCHEDULED,
    total: counts.FAILED + counts.RETRY_SCHEDULED,
    groups: [...byText]
      .map(([text, count]) => ({ text, count }))
      .toSorted((a, b) => b.count - a.count),
  }
}

/** The service queues at most 1,000 per request and returns where to continue. */
export async function retryAll(
  webhookId: string,
  {
    preview: { throughSequence, previewedAt },
    filter,
    onProgress,
  }: {
    preview: RetryPreview
    filter: DeliveryStatus | null
    onProgress: (progress: RetryProgress) => void
  },
): Promise<void> {
  const progress = { queued: 0, archived: 0 }
  for (const status of STATUSES) {
    if (filter !== null && filter !== status) continue
    let afterSequence: number | null = 0
    while (afterSequence !== null) {
      const body = { status, throughSequence, previewedAt, afterSequence }
      const params = { path: { webhookId } }
      const result: RetryProgress & { continueAfter: number | null } = await unwrap(
        client.POST('/dashboard/webhooks/{webhookId}/retry', { params, body }),
      )
      progress.queued += result.queued
      progress.archived += result.archived
      onProgress({ ...progress })
      afterSequence = result.continueAfter
    }
  }
}
