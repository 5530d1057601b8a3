import type { DeliveredEvent } from '../../../../../sdk/src/resource/types.ts'
import {
  verifyWebhook,
  type WebhookDelivery,
  WebhookVerificationError,
} from '../../../../../sdk/src/webhook/verify-webhook.ts'
import type { Column } from '../../output/table.ts'
import type { ReceivedRequest } from './webhook-receiver.ts'

/** `valid`, or a code of `WebhookVerificationError`. */
type Signatures = { standard: string; service: string }

/** A delivery as it is printed. */
export type ListenedDelivery = {
  receivedAt: string
  sequence: number | null
  attempt: number | null
  deliveryId: string | null
  /** Null if the event was read with the API. */
  signatures: Signatures | null
  /** The status of the response. Null if the event was read with the API. */
  status: number | null
  isReplayed: boolean
  event: Pick<DeliveredEvent, 'category' | 'action'> | null
}

const VALID = 'valid'

export const DELIVERY_COLUMNS: readonly Column<ListenedDelivery>[] = [
  { title: 'TIME', value: ({ receivedAt }) => receivedAt, isWhole: true, widthMin: 24 },
  { title: 'SEQ', value: ({ sequence }) => sequence, isRight: true, isWhole: true, widthMin: 6 },
  { title: 'ATTEMPT', value: ({ attempt }) => attempt, isRight: true, rank: 1 },
  { title: 'CATEGORY', value: ({ event }) => event?.category ?? null, widthMin: 12 },
  { title: 'ACTION', value: ({ event }) => event?.action ?? null, widthMin: 20 },
  { title: 'SIGNATURE', value: ({ signatures }) => signatureText(signatures) },
  { title: 'STATUS', value: ({ status, isReplayed }) => (isReplayed ? 'replayed' : status) },
]

function signatureText(signatures: Signatures | null): string | null {
  if (signatures === null) return null
  const { standard, service } = signatures
  return standard === service ? standard : `standard ${standard}, service ${service}`
}

type CheckedDelivery = {
  signatures: Signatures
  /** Null unless the standard signature is valid, which also protects against replays. */
  delivery: WebhookDelivery | null
  /** Why there is no delivery. */
  error: WebhookVerificationError | null
}

/** Verifies both signatures of a request. */
export async function checkDelivery(
  request: ReceivedRequest,
  secret: string,
): Promise<CheckedDelivery> {
  const standard = await tryVerify(request, secret, 'standard')
  const service = await tryVerify(request, secret, 'service')
  const isRefused = standard instanceof WebhookVerificationError
  return {
    signatures: { standard: verdictOf(standard), service: verdictOf(service) },
    delivery: isRefused ? null : standard,
    error: isRefused ? standard : null,
  }
}

async function tryVerify(
  request: ReceivedRequest,
  secret: string,
  scheme: 'standard' | 'service',
): Promise<WebhookDelivery | WebhookVerificationError> {
  try {
    return await verifyWebhook(request, secret, { scheme })
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error
    throw error
  }
}

function verdictOf(result: WebhookDelivery | WebhookVerificationError): string {
  return result instanceof WebhookVerificationError ? result.code : VALID
}
