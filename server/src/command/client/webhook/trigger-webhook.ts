import { setTimeout as delay } from 'node:timers/promises'
import type { Annals } from '../../../../../sdk/src/annals.ts'
import type { DeliveryWithAttempts } from '../../../../../sdk/src/resource/types.ts'
import { OperatorError } from '../../../errors.ts'
import { monotonicClock as clock } from '../../../platform/time/clock.ts'
import { findWorkspace } from '../find-workspace.ts'
import type { ClientCommand } from '../run-client.ts'

/** An attempt may take 15 seconds. */
const ATTEMPT_MS_MAX = 20_000
const POLL_MS = 200

/** `annals webhooks trigger`: sends a test delivery, and waits for the outcome of its first attempt. */
export async function triggerWebhook(
  { annals, output, signal }: ClientCommand,
  { webhookId, workspace }: { webhookId: string | undefined; workspace?: string },
): Promise<void> {
  const id = webhookId ?? (await findOnlyWebhook(annals, workspace, signal))
  const { deliveryId } = await annals.webhooks.test(id, { signal })
  const delivery = await waitForAttempt(annals, { webhookId: id, deliveryId, signal })
  const { attempts: _, ...shown } = delivery
  await output.item(shown, [
    ['delivery', delivery.id],
    ['webhook', id],
    ['url', delivery.url],
    ['status', delivery.status],
    ['response', delivery.responseStatus === null ? '' : String(delivery.responseStatus)],
    ['duration', delivery.durationMs === null ? '' : `${delivery.durationMs} ms`],
  ])
  if (delivery.status === 'SUCCEEDED') return
  const reason = delivery.failureReason ?? responseSentence(delivery)
  const next =
    delivery.nextAttemptAt === null ? '' : ` Annals retries at ${delivery.nextAttemptAt}.`
  throw new OperatorError(`The test was not delivered. ${reason}${next}`)
}

function responseSentence({ responseStatus, errorClass }: DeliveryWithAttempts): string {
  if (responseStatus !== null) return `The receiver responded with ${responseStatus}.`
  return errorClass === null ? 'There is no response yet.' : `The reason is ${errorClass}.`
}

async function findOnlyWebhook(
  annals: Annals,
  workspace: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  const workspaceId = await findWorkspace(annals, workspace, signal)
  const webhooks = await annals.webhooks.list(workspaceId, { signal })
  const [only, ...others] = webhooks
  if (!only)
    throw new OperatorError(
      'This workspace has no webhooks. Create one in the dashboard under Webhooks, or run: annals webhooks listen',
    )
  if (others.length === 0) return only.id
  const list = webhooks.map(({ id, name, url }) => `${id} (${name ?? url})`).join(', ')
  throw new OperatorError(`This workspace has several webhooks. Name one of: ${list}`)
}

async function waitForAttempt(
  annals: Annals,
  { webhookId, deliveryId, signal }: { webhookId: string; deliveryId: string; signal: AbortSignal },
): Promise<DeliveryWithAttempts> {
  const giveUpAtMs = clock() + ATTEMPT_MS_MAX
  for (;;) {
    const delivery = await annals.webhooks.delivery(webhookId, deliveryId, { signal })
    const isTried = !['PENDING', 'SENDING'].includes(delivery.status)
    if (isTried || clock() > giveUpAtMs) return delivery
    await delay(POLL_MS, undefined, { signal })
  }
}
