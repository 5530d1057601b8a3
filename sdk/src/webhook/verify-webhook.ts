import { systemClock } from '../client/connection.ts'
import { AnnalsError } from '../client/errors.ts'
import { parseJson } from '../client/parse-json.ts'
import type { DeliveredEvent } from '../resource/types.ts'
import { type Body, readBody } from './read-body.ts'
import { isServiceSigned, isStandardSigned } from './signature.ts'

/** A request with its body as it arrived: a `Request`, or the headers and the body from a framework. */
export type WebhookRequest =
  | Request
  | {
      headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
      /** The bytes as they arrived. JSON that was parsed and serialized again has another signature. */
      body: Body
    }

export type VerifyOptions = {
  /**
   * Which signature to verify. Default: `standard`, which is `webhook-signature`. `service` is
   * `x-service-signature`, which covers only the body, so a recorded request can be sent again with a new
   * time and a new delivery ID. Annals sends both.
   */
  scheme?: 'standard' | 'service'
  /** How far `webhook-timestamp` may be off. Default: five minutes. */
  toleranceSeconds?: number
  /** Default: 1 MiB, which is more than any delivery. */
  bodyBytesMax?: number
  /** The current time in Unix milliseconds, for tests. */
  clock?: () => number
}

/** A verified delivery. */
export type WebhookDelivery = {
  event: DeliveredEvent
  /** The same for every attempt. Store it, and ignore a delivery that you have already processed. */
  deliveryId: string
  /** The position among the webhook's deliveries, from 1 without gaps. See `GapDetector`. */
  sequence: number
  /** The number of the attempt, from 1. */
  attempt: number
  /** When Annals sent this attempt. */
  sentAt: Date
  /** A test delivery looks like an event but isn't in the chain. Don't store it. */
  isTest: boolean
}

/**
 * The request is not a delivery that Annals signed. Respond with 401. The codes are `missing_signature`,
 * `invalid_signature`, `timestamp_out_of_range`, `invalid_delivery` and `body_too_large`.
 */
export class WebhookVerificationError extends AnnalsError {
  override name = 'WebhookVerificationError'

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { code, status: code === 'body_too_large' ? 413 : 401, cause })
  }
}

const TOLERANCE_SECONDS = 300
const BODY_BYTES_MAX = 1_048_576
const utf8 = new TextEncoder()

/**
 * Verifies the signature and the time of a webhook request, and returns its event. Pass several secrets
 * during a rotation: any of them may have signed.
 *
 * ```ts
 * const { event, deliveryId } = await verifyWebhook(request, secret)
 * ```
 */
export async function verifyWebhook(
  request: WebhookRequest,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookDelivery> {
  const secrets = typeof secret === 'string' ? [secret] : secret
  if (secrets.length === 0 || secrets.some((text) => typeof text !== 'string' || text === '')) {
    // An empty key would accept what anyone can sign.
    throw new TypeError('The webhook secret is missing.')
  }
  const header = headerReader(request.headers)
  const body = await readBody(request.body, options.bodyBytesMax ?? BODY_BYTES_MAX)
  if (body === null) {
    throw new WebhookVerificationError('body_too_large', 'The body is larger than bodyBytesMax.')
  }
  const isStandard = (options.scheme ?? 'standard') === 'standard'
  const name = isStandard ? 'webhook-signature' : 'x-service-signature'
  const signature = header(name)
  if (signature === null) {
    throw new WebhookVerificationError('missing_signature', `The header ${name} is missing.`)
  }
  const isSigned = isStandard
    ? await isStandardSigned(signature, signedContent(header, body), secrets)
    : await isServiceSigned(signature, body, secrets)
  if (!isSigned) {
    const message = `${name} doesn't match. Pass the body as it arrived, and the secret of this webhook.`
    throw new WebhookVerificationError('invalid_signature', message)
  }
  const prefix = isStandard ? 'webhook' : 'x-service'
  const sentAtSeconds = Number(header(`${prefix}-timestamp`) ?? Number.NaN)
  requireRecent(sentAtSeconds, options)
  return toDelivery(body, sentAtSeconds, {
    deliveryId: header(isStandard ? 'webhook-id' : 'x-service-delivery-id'),
    sequence: Number(header('x-service-sequence')),
    attempt: Number(header('x-service-attempt')),
  })
}

type Header = (name: string) => string | null

function headerReader(headers: WebhookRequest['headers']): Header {
  if (headers instanceof Headers) return (name) => headers.get(name)
  const values = new Map(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  return (name) => {
    const value = values.get(name)
    return typeof value === 'string' ? value : (value?.join(', ') ?? null)
  }
}

function signedContent(header: Header, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = utf8.encode(`${header('webhook-id') ?? ''}.${header('webhook-timestamp') ?? ''}.`)
  const content = new Uint8Array(head.length + body.length)
  content.set(head)
  content.set(body, head.length)
  return content
}

function requireRecent(sentAtSeconds: number, options: VerifyOptions): void {
  const nowMs = (options.clock ?? systemClock)()
  const offSeconds = Math.abs(nowMs / 1_000 - sentAtSeconds)
  // This also refuses NaN, which a missing or invalid header gives.
  if (!(offSeconds <= (options.toleranceSeconds ?? TOLERANCE_SECONDS))) {
    const message = 'The time of the request is too far off. Check the clock of this machine.'
    throw new WebhookVerificationError('timestamp_out_of_range', message)
  }
}

function toDelivery(
  body: Uint8Array,
  sentAtSeconds: number,
  facts: { deliveryId: string | null; sequence: number; attempt: number },
): WebhookDelivery {
  const event = parseEvent(body)
  const { deliveryId, sequence, attempt } = facts
  if (event === null || !deliveryId) {
    const message = 'The signature is valid, but the body is not an Annals delivery.'
    throw new WebhookVerificationError('invalid_delivery', message)
  }
  return {
    event,
    deliveryId,
    sequence,
    attempt,
    sentAt: new Date(sentAtSeconds * 1_000),
    // The header that marks a test isn't signed.
    isTest: event.action === 'webhook.test' && event.metadata?.test === true,
  }
}

function parseEvent(body: Uint8Array): DeliveredEvent | null {
  try {
    const event: unknown = parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body))
    return isEvent(event) ? event : null
  } catch {
    return null
  }
}

function isEvent(value: unknown): value is DeliveredEvent {
  return typeof value === 'object' && value !== null && 'id' in value && 'action' in value
}
