import type { CallOptions, Connection } from '../client/connection.ts'
import { Pages } from '../client/pages.ts'
import { type ApiRequest, sendJson } from '../client/send.ts'
import type {
  CreatedWebhook,
  Delivery,
  DeliveryFilters,
  DeliveryPage,
  DeliveryWithAttempts,
  FinishedRotation,
  RedeliveryResult,
  RedeliveryWindow,
  RotatedSecret,
  SecretRotation,
  TestReceipt,
  Webhook,
  WebhookChange,
  WebhookInput,
  WebhookStatusResult,
} from './types.ts'

/** Manages webhooks and their deliveries. Requires a company key. */
export class Webhooks {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Creates a webhook. Store its `secret`: no other response contains it. */
  create(
    workspaceId: string,
    webhook: WebhookInput,
    options?: CallOptions,
  ): Promise<CreatedWebhook> {
    const path = `/v1/workspaces/${encodeURIComponent(workspaceId)}/webhooks`
    return sendJson(this.#connection, { method: 'POST', path, body: webhook }, options)
  }

  /** The webhooks of a workspace, oldest first. */
  async list(workspaceId: string, options?: CallOptions): Promise<Webhook[]> {
    const path = `/v1/workspaces/${encodeURIComponent(workspaceId)}/webhooks`
    const { webhooks } = await sendJson<{ webhooks: Webhook[] }>(
      this.#connection,
      { method: 'GET', path },
      options,
    )
    return webhooks
  }

  get(webhookId: string, options?: CallOptions): Promise<Webhook> {
    return this.#send(webhookId, '', { method: 'GET' }, options)
  }

  update(webhookId: string, change: WebhookChange, options?: CallOptions): Promise<Webhook> {
    return this.#send(webhookId, '', { method: 'PATCH', body: change }, options)
  }

  delete(webhookId: string, options?: CallOptions): Promise<void> {
    return this.#send(webhookId, '', { method: 'DELETE' }, options)
  }

  enable(webhookId: string, options?: CallOptions): Promise<WebhookStatusResult> {
    return this.#send(webhookId, '/enable', { method: 'POST', retryPolicy: 'safe' }, options)
  }

  /** Stops deliveries. Those that wait become FAILED. */
  disable(webhookId: string, options?: CallOptions): Promise<WebhookStatusResult> {
    return this.#send(webhookId, '/disable', { method: 'POST', retryPolicy: 'safe' }, options)
  }

  /** Creates a new secret. During the overlap, pass both secrets to `verifyWebhook`. */
  rotateSecret(
    webhookId: string,
    rotation: SecretRotation = {},
    options?: CallOptions,
  ): Promise<RotatedSecret> {
    return this.#send(webhookId, '/rotate-secret', { method: 'POST', body: rotation }, options)
  }

  /** Ends the overlap early, so that only the new secret signs. */
  finishRotation(webhookId: string, options?: CallOptions): Promise<FinishedRotation> {
    const request = { method: 'POST', retryPolicy: 'safe' } as const
    return this.#send(webhookId, '/finish-rotation', request, options)
  }

  /** Sends a test delivery. */
  test(webhookId: string, options?: CallOptions): Promise<TestReceipt> {
    return this.#send(webhookId, '/test', { method: 'POST' }, options)
  }

  /** The deliveries, newest first, or in ascending order with `afterSequence`. */
  deliveries(
    webhookId: string,
    filters: DeliveryFilters = {},
    options?: CallOptions,
  ): Pages<Delivery, DeliveryPage> {
    const read = (cursor: string | undefined): Promise<DeliveryPage> => {
      const query = { ...filters, cursor }
      return this.#send(webhookId, '/deliveries', { method: 'GET', query }, options)
    }
    return new Pages(read, filters.cursor)
  }

  /** One delivery with its last attempts. */
  delivery(
    webhookId: string,
    deliveryId: string,
    options?: CallOptions,
  ): Promise<DeliveryWithAttempts> {
    const path = `/deliveries/${encodeURIComponent(deliveryId)}`
    return this.#send(webhookId, path, { method: 'GET' }, options)
  }

  /** Sends one delivery again. */
  redeliver(webhookId: string, deliveryId: string, options?: CallOptions): Promise<Delivery> {
    const path = `/deliveries/${encodeURIComponent(deliveryId)}/redeliver`
    return this.#send(webhookId, path, { method: 'POST' }, options)
  }

  /** Sends what was missed in a time range. While `isComplete` is false, call again from `continueFrom`. */
  redeliverWindow(
    webhookId: string,
    window: RedeliveryWindow,
    options?: CallOptions,
  ): Promise<RedeliveryResult> {
    return this.#send(webhookId, '/redeliver', { method: 'POST', body: window }, options)
  }

  #send<T>(
    webhookId: string,
    path: string,
    request: Omit<ApiRequest, 'path'>,
    options?: CallOptions,
  ): Promise<T> {
    const full = `/v1/webhooks/${encodeURIComponent(webhookId)}${path}`
    return sendJson(this.#connection, { ...request, path: full }, options)
  }
}
