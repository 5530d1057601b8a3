import { DeliveredEvent } from '../schema/event.ts'
import type { SchemaComponents } from './components.ts'
import { DELIVERY_ID, EXAMPLES, TRACE_ID } from './examples.ts'
import type { JsonObject } from './json-object.ts'

type Header = { description: string; isOptional?: true; schema: JsonObject; example: unknown }

const UNIX_SECONDS = { type: 'string', pattern: String.raw`^\d+$` }
const DELIVERY = { type: 'string', format: 'uuid' }

/** The headers of a delivery. IDs, times and signatures are those of the first case of `vectors/webhook.json`. */
const HEADERS: Readonly<Record<string, Header>> = {
  'x-service-signature': {
    description:
      '`v1=` and the HMAC-SHA-256 of the body in hexadecimal. The key is the whole secret as UTF-8.',
    schema: { type: 'string', pattern: '^v1=[0-9a-f]{64}$' },
    example: 'v1=737c303175f8fb606b13df8ba7459d713f401460d181fd060209e516061fef31',
  },
  'x-service-timestamp': {
    description: 'The time of the attempt, in Unix seconds.',
    schema: UNIX_SECONDS,
    example: '1772366400',
  },
  'x-service-delivery-id': {
    description: 'The ID of the delivery. It is the same for every attempt.',
    schema: DELIVERY,
    example: DELIVERY_ID,
  },
  'x-service-attempt': {
    description: 'The number of the attempt, starting at 1.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
  'x-service-sequence': {
    description:
      "The position of the delivery among the webhook's deliveries, starting at 1, without gaps.",
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
  'x-service-test': {
    description: '`true` for a test, otherwise missing.',
    isOptional: true,
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  'x-trace-id': {
    description: 'The trace ID of the request that sent the event, if there is one.',
    isOptional: true,
    schema: { type: 'string' },
    example: TRACE_ID,
  },
  traceparent: {
    description:
      'The span of this attempt, as in W3C Trace Context. Only sent if the operator traces requests.',
    isOptional: true,
    schema: { type: 'string', pattern: '^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$' },
    example: `00-${TRACE_ID}-00f067aa0ba902b7-01`,
  },
  'webhook-id': {
    description: 'The ID of the delivery, as in Standard Webhooks.',
    schema: DELIVERY,
    example: DELIVERY_ID,
  },
  'webhook-timestamp': {
    description: 'The time of the attempt, in Unix seconds, as in Standard Webhooks.',
    schema: UNIX_SECONDS,
    example: '1772366400',
  },
  'webhook-signature': {
    description:
      '`v1,` and the HMAC-SHA-256 of ID, timestamp and body in base64, as in Standard Webhooks. During a secret rotation, two of them, separated by a space.',
    schema: { type: 'string' },
    example: 'v1,bnnRukiaL5byCduh1uksuJeqQRsQJ4KV6InU5hI4NJE=',
  },
}

/** The `webhooks` section: the request that a receiver gets. */
export function webhookRequests(components: SchemaComponents): JsonObject {
  const parameters = Object.entries(HEADERS).map(([name, { isOptional, ...header }]) => ({
    name,
    in: 'header',
    ...(!isOptional && { required: true }),
    ...header,
  }))
  const media = { schema: components.convert(DeliveredEvent), example: EXAMPLES.DeliveredEvent }
  return {
    AUDIT_EVENT_CREATED: {
      post: {
        operationId: 'receiveEvent',
        summary: 'Receive an event',
        description:
          'Annals sends this request to the `url` of a webhook for every new event that matches its `projectId` and `filter`, together with the extra `headers` of the webhook. Verify a signature over the raw body before you parse it. A delivery can arrive more than once, so ignore delivery IDs that you have processed.',
        tags: ['Webhooks'],
        security: [],
        parameters,
        requestBody: { required: true, content: { 'application/json': media } },
        responses: {
          '2XX': { description: 'The delivery succeeded. Respond within 15 seconds.' },
          410: { description: 'Annals disables the webhook.' },
          default: {
            description:
              'The attempt failed. Annals retries up to seven times over about 28 hours. Redirects are not followed.',
          },
        },
      },
    },
  }
}
