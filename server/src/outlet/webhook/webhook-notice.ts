import type { Queryable } from '../../platform/pg/database.ts'
import { type NoticeDraft, timeText } from '../../tenancy/notice/notice.ts'
import { type FailureCandidate, listFailureCandidates } from './failure-candidate-store.ts'
import type { Webhook } from './webhook.ts'
import { OVERDUE_MS_MAX, type HealthState } from './webhook-state.ts'
import { readWebhookHealth } from './webhook-health-store.ts'

const WEBHOOKS_PER_PAGE = 100
/** Fewer failures can be a coincidence, even if they are a large share of a few deliveries. */
const FAILURES_MIN = 3

type Health = Pick<Awaited<ReturnType<typeof readWebhookHealth>>, 'lastDay' | 'overdueSince'>
type NamedWebhook = Pick<Webhook, 'companyId' | 'workspaceId' | 'id' | 'name' | 'url'>

/** The webhooks that keep failing. Null if the signal aborts. */
export async function listFailingWebhooks(
  db: Queryable,
  nowMs: number,
  signal: AbortSignal,
): Promise<NoticeDraft[] | null> {
  const failing: NoticeDraft[] = []
  let after: FailureCandidate | null = null
  do {
    const page: FailureCandidate[] = await listFailureCandidates(db, {
      after,
      nowMs,
      limit: WEBHOOKS_PER_PAGE,
    })
    for (const webhook of page) {
      if (signal.aborted) return null
      const { workspaceId, id: webhookId } = webhook
      const health = await readWebhookHealth(db, { workspaceId, webhookId, nowMs })
      if (keepsFailing(webhook, health, nowMs)) failing.push(failingNotice(webhook, health))
    }
    after = page.at(-1) ?? null
  } while (after !== null)
  return failing
}

/** Whether the dashboard shows the webhook as failing, and not only because of one or two failed attempts. */
function keepsFailing(
  { failureCount }: FailureCandidate,
  { state, lastDay, overdueSince }: Health & { state: HealthState },
  nowMs: number,
): boolean {
  if (state !== 'FAILING') return false
  const isLate = overdueSince !== null && nowMs - overdueSince.getTime() > OVERDUE_MS_MAX
  const { failed, retrying } = lastDay
  return isLate || failureCount >= FAILURES_MIN || failed + retrying >= FAILURES_MIN
}

function failingNotice(webhook: NamedWebhook, health: Health): NoticeDraft {
  return {
    ...placeOf(webhook),
    kind: 'WEBHOOK_FAILING',
    cause: webhook.id,
    message: `The webhook ${labelOf(webhook)} is failing: ${resultOf(health)}`,
  }
}

/** The numbers of the last day, or else how long deliveries have been waiting. */
function resultOf({ lastDay, overdueSince }: Health): string {
  const { succeeded, failed, retrying } = lastDay
  const all = succeeded + failed + retrying
  if (all === 0 && overdueSince !== null) {
    return `deliveries have been waiting since ${timeText(overdueSince)}.`
  }
  return `${succeeded.toLocaleString('en')} of ${all.toLocaleString('en')} deliveries of the last 24 hours succeeded.`
}

export function disabledNotice(
  webhook: NamedWebhook,
  { reason, now }: { reason: string; now: Date },
): NoticeDraft {
  return {
    ...placeOf(webhook),
    kind: 'WEBHOOK_DISABLED',
    cause: `${webhook.id}:${now.getTime()}`,
    message: `The webhook ${labelOf(webhook)} was disabled. ${reason}`,
  }
}

function placeOf({ companyId, workspaceId, id }: NamedWebhook) {
  return { companyId, workspaceId, link: `/app/webhooks/${id}` }
}

/** The rest of a URL can contain a secret. */
function labelOf({ name, url }: NamedWebhook): string {
  return name ?? new URL(url).host
}
