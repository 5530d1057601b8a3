import type { paths } from '../../api/schema.d.ts'

type Json<Path extends keyof paths, Status extends number = 200> = paths[Path] extends {
  get: { responses: { [S in Status]: { content: { 'application/json': infer Body } } } }
}
  ? Body
  : never

export type WebhookChange =
  paths['/dashboard/webhooks/{webhookId}']['patch']['requestBody']['content']['application/json']
export type WebhookPage = Json<'/dashboard/webhooks'>
export type Webhook = WebhookPage['webhooks'][number]
export type WebhookHealth = Json<'/dashboard/webhooks/{webhookId}/health'>
export type Delivery = Json<'/dashboard/webhooks/{webhookId}/deliveries'>['data'][number]
export type DeliveryDetail = Json<'/dashboard/webhooks/{webhookId}/deliveries/{deliveryId}'>
export type DeliveryStatus = Delivery['status']
