import type { Gate } from '../auth/gate.ts'
import { listRoutes } from '../define-route.ts'
import { getHealth, getReady } from '../health.ts'
import { cancelExport } from './cancel-export.ts'
import { createEvent } from './create-event.ts'
import { createEventBatch } from './create-event-batch.ts'
import { createExport } from './create-export.ts'
import { createWebhook } from './create-webhook.ts'
import { createWorkspaceKey } from './create-workspace-key.ts'
import { deleteWebhook } from './delete-webhook.ts'
import { disableWebhook } from './disable-webhook.ts'
import { downloadExport } from './download-export.ts'
import { enableWebhook } from './enable-webhook.ts'
import { finishWebhookRotation } from './finish-webhook-rotation.ts'
import { getEvent } from './get-event.ts'
import { getExport } from './get-export.ts'
import { getFeed } from './get-feed.ts'
import { getKeyStatus } from './get-key-status.ts'
import { getWebhookRoute } from './get-webhook.ts'
import { getWebhookDelivery } from './get-webhook-delivery.ts'
import { getWorkspaceRoute } from './get-workspace.ts'
import { listEventTypes } from './list-event-types.ts'
import { listEvents } from './list-events.ts'
import { listExports } from './list-exports.ts'
import { listProjectsRoute } from './list-projects.ts'
import { listWebhookDeliveries } from './list-webhook-deliveries.ts'
import { listWebhooks } from './list-webhooks.ts'
import { listWorkspacesRoute } from './list-workspaces.ts'
import { preflightExport } from './preflight-export.ts'
import { redeliverWebhookDelivery } from './redeliver-webhook-delivery.ts'
import { redeliverWebhookWindow } from './redeliver-webhook-window.ts'
import { rerunExport } from './rerun-export.ts'
import { rotateKeyRoute } from './rotate-key.ts'
import { rotateWebhookSecret } from './rotate-webhook-secret.ts'
import { testWebhook } from './test-webhook.ts'
import { updateWebhook } from './update-webhook.ts'

/** Every route of the API, in the order of the contract. */
export const V1_ROUTES = [
  listRoutes('Health', { getHealth, getReady }),
  listRoutes('Events', { createEvent, createEventBatch, listEvents, getEvent, getFeed }),
  listRoutes('Workspaces', {
    listWorkspaces: listWorkspacesRoute,
    getWorkspace: getWorkspaceRoute,
    listProjects: listProjectsRoute,
    listEventTypes,
  }),
  listRoutes('Keys', { createWorkspaceKey, rotateKey: rotateKeyRoute, getKeyStatus }),
  listRoutes('Webhooks', {
    createWebhook,
    listWebhooks,
    getWebhook: getWebhookRoute,
    updateWebhook,
    deleteWebhook,
    enableWebhook,
    disableWebhook,
    rotateWebhookSecret,
    finishWebhookRotation,
    testWebhook,
    listWebhookDeliveries,
    getWebhookDelivery,
    redeliverWebhookDelivery,
    redeliverWebhookWindow,
  }),
  listRoutes('Exports', {
    createExport,
    getExport,
    downloadExport,
    listExports,
    preflightExport,
    rerunExport,
    cancelExport,
  }),
] as const

/** What each operation of the API requires of a key, by `operationId`. */
export const OPERATION_GATES: ReadonlyMap<string, Gate> = new Map(
  V1_ROUTES.flatMap(({ gates }) => [...gates]),
)
