import { listRoutes } from '../../define-route.ts'
import { checkWebhookSignature } from './check-signature.ts'
import { createDashboardWebhook } from './create-webhook.ts'
import { deleteDashboardWebhook } from './delete-webhook.ts'
import { disableDashboardWebhook } from './disable-webhook.ts'
import { enableDashboardWebhook } from './enable-webhook.ts'
import { finishDashboardWebhookRotation } from './finish-rotation.ts'
import { getDashboardDelivery } from './get-delivery.ts'
import { getDashboardWebhook } from './get-webhook.ts'
import { getWebhookHealth } from './get-webhook-health.ts'
import { listDashboardDeliveries } from './list-deliveries.ts'
import { listEventDeliveriesRoute } from './list-event-deliveries.ts'
import { listDashboardWebhooks } from './list-webhooks.ts'
import { previewDashboardRetry } from './preview-retry.ts'
import { redeliverDashboardDelivery } from './redeliver-delivery.ts'
import { redeliverDashboardWindow } from './redeliver-window.ts'
import { retryDashboardDeliveries } from './retry-deliveries.ts'
import { rotateDashboardWebhookSecret } from './rotate-secret.ts'
import { testDashboardWebhook } from './test-webhook.ts'
import { updateDashboardWebhook } from './update-webhook.ts'

export const WEBHOOKS_ROUTES = listRoutes('Webhooks', {
  listDashboardWebhooks,
  createDashboardWebhook,
  getDashboardWebhook,
  getWebhookHealth,
  updateDashboardWebhook,
  deleteDashboardWebhook,
  enableDashboardWebhook,
  disableDashboardWebhook,
  rotateDashboardWebhookSecret,
  finishDashboardWebhookRotation,
  testDashboardWebhook,
  checkWebhookSignature,
  listDashboardDeliveries,
  listEventDeliveries: listEventDeliveriesRoute,
  getDashboardDelivery,
  redeliverDashboardDelivery,
  redeliverDashboardWindow,
  previewDashboardRetry,
  retryDashboardDeliveries,
})
