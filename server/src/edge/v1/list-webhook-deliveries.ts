import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from 'typebox'
import { ApiError } from '../../errors.ts'
import { listDeliveries } from '../../outlet/webhook/delivery-store.ts'
import type { Webhook } from '../../outlet/webhook/webhook.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import { errorResponses } from '../schema/common.ts'
import { DeliveryPage, DeliveryQuery, WEBHOOK_ERRORS, WebhookParams } from '../schema/webhook.ts'
import { deliveryRecord } from '../webhook-record.ts'
import { getWebhook, type WebhookDeps } from '../webhook-resource.ts'

const LIMIT_DEFAULT = 50

/** GET /v1/webhooks/{webhookId}/deliveries: newest first, or onward from a sequence. */
export const listWebhookDeliveries =
  (deps: WebhookDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/v1/webhooks/:webhookId/deliveries',
      {
        onRequest: deps.requireKey({ scope: 'COMPANY' }),
        schema: {
          operationId: 'listWebhookDeliveries',
          summary: 'List deliveries',
          description:
            'One for each event and webhook. Newest first by sequence; with `afterSequence` ascending. Kept until 30 days after their end. A cursor belongs to its webhook and filters.',
          tags: ['Webhooks'],
          params: WebhookParams,
          querystring: DeliveryQuery,
          response: {
            200: DeliveryPage,
            ...errorResponses(...WEBHOOK_ERRORS, 'invalid_cursor'),
          },
        },
      },
      async ({ principal, params, query }) => {
        const webhook = await getWebhook(deps, principal, params.webhookId)
        const binding = bindingOf(webhook, query)
        const limit = query.limit ?? LIMIT_DEFAULT
        const deliveries = await listDeliveries(deps.db, {
          workspaceId: webhook.workspaceId,
          webhookId: webhook.id,
          status: query.status ?? null,
          place: placeOf(query, binding, deps.cursors),
          // One more than asked for tells whether there is a further page.
          limit: limit + 1,
        })
        const hasMore = deliveries.length > limit
        if (hasMore) deliveries.pop()
        const last = deliveries.at(-1)
        return {
          data: deliveries.map(deliveryRecord),
          nextCursor: hasMore && last ? deps.cursors.encode(String(last.sequence), binding) : null,
        }
      },
    )
  }

type Query = Static<typeof DeliveryQuery>

/** What a cursor belongs to: tenant, webhook, filters and order, but not the page size. */
function bindingOf({ companyId, id }: Webhook, { status, afterSequence }: Query): string {
  const order = afterSequence === undefined ? 'newest' : `after ${afterSequence}`
  return `deliveries/${companyId}/${id}/${status ?? 'all'}/${order}`
}

function placeOf({ cursor, afterSequence }: Query, binding: string, cursors: CursorCodec) {
  const reached = cursor === undefined ? null : sequenceOf(cursors.decode(cursor, binding))
  return afterSequence === undefined ? { before: reached } : { after: reached ?? afterSequence }
}

function sequenceOf(text: string | null): number {
  if (text === null) throw new ApiError('invalid_cursor')
  return Number(text)
}
