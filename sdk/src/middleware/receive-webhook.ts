import { AnnalsError } from '../client/errors.ts'
import { safely } from '../client/safely.ts'
import {
  verifyWebhook,
  type VerifyOptions,
  type WebhookDelivery,
  type WebhookRequest,
} from '../webhook/verify-webhook.ts'

/** Processes a delivery. If it throws, Annals gets 500 and sends the delivery again later. */
export type OnDelivery = (delivery: WebhookDelivery) => unknown

export type ReceiveOptions = VerifyOptions & {
  /** Called with the reason when a request is refused or a delivery can't be processed. */
  onError?: (error: unknown) => void
}

type Receipt = { status: 200 | 401 | 413 | 500; body: { error?: string } }

/** Verifies a request, passes its delivery to `onDelivery`, and returns what to respond. Never throws. */
export async function receiveWebhook(
  request: WebhookRequest,
  secret: string | readonly string[],
  onDelivery: OnDelivery,
  options: ReceiveOptions,
): Promise<Receipt> {
  try {
    await onDelivery(await verifyWebhook(request, secret, options))
    return { status: 200, body: {} }
  } catch (error) {
    safely(() => options.onError?.(error))
    const isRefused = error instanceof AnnalsError && error.name === 'WebhookVerificationError'
    if (!isRefused) return { status: 500, body: { error: 'The delivery was not processed.' } }
    // `onError` got the reason. The sender doesn't need it.
    return error.status === 413
      ? { status: 413, body: { error: 'The body is too large.' } }
      : { status: 401, body: { error: 'The signature or the timestamp is not valid.' } }
  }
}

/** Like `receiveWebhook`, for frameworks with web requests and responses. */
export async function webhookResponse(
  request: Request,
  secret: string | readonly string[],
  onDelivery: OnDelivery,
  options: ReceiveOptions,
): Promise<Response> {
  const { status, body } = await receiveWebhook(request, secret, onDelivery, options)
  return Response.json(body, { status })
}
