import type { Gate } from '../auth/gate.ts'
import { listRoutes } from '../define-route.ts'
import { getHealth, getReady } from '../health.ts'
import { cancelExport } from './export/cancel-export.ts'
import { createEvent } from './event/create-event.ts'
import { createEventBatch } from './event/create-event-batch.ts'
import { createExport } from './export/create-export.ts'
import { createWebhook } from './webhook/create-webhook.ts'
import { createWorkspaceKey } from './workspace/create-workspace-key.ts'
import { deleteWebhook } from './webhook/delete-webhook.ts'
import { disableWebhook } from './webhook/disable-webhook.ts'
import { downloadExport } from './export/download-export.ts'
import { enableWebhook } from './webhook/enable-webhook.ts'
import { finishWebhookRotation } from './webhook/finish-webhook-rotation.ts'
import { getCheckpoint } from './proof/get-checkpoint.ts'
import { getConsistency } from './proof/get-consistency.ts'
import { getEvent } from './event/get-event.ts'
import { getEventProof } from './proof/get-event-proof.ts'
import { getExport } from './export/get-export.ts'
import { getExportManifest } from './export/get-export-manifest.ts'
import { getFeed } from './event/get-feed.ts'
import { getKeyStatus } from './workspace/get-key-status.ts'
import { getServiceKeys } from './proof/get-service-keys.ts'
import { getTile } from './proof/get-tile.ts'
import { getTlogCheckpoint } from './proof/get-tlog-checkpoint.ts'
import { getWebhookRoute } from './webhook/get-webhook.ts'
import { getWebhookDelivery } from './webhook/get-webhook-delivery.ts'
import { getWorkspaceRoute } from './workspace/get-workspace.ts'
import { listEventTypes } from './event/list-event-types.ts'
import { listEvents } from './event/list-events.ts'
import { listExports } from './export/list-exports.ts'
import { listProjectsRoute } from './workspace/list-projects.ts'
import { listWebhookDeliveries } from './webhook/list-webhook-deliveries.ts'
import { listWebhooks } from './webhook/list-webhooks.ts'
import { listWorkspacesRoute } from './workspace/list-workspaces.ts'
import { preflightExport } from './export/preflight-export.ts'
import { redeliverWebhookDelivery } from './webhook/redeliver-webhook-delivery.ts'
import { redeliverWebhookWindow } from './webhook/redeliver-webhook-window.ts'
import { rerunExport } from './export/rerun-export.ts'
import { rotateKeyRoute } from './workspace/rotate-key.ts'
import { rotateWebhookSecret } from './webhook/rotate-webhook-secret.ts'
import { testWebhook } from './webhook/test-webhook.ts'
import { updateWebhook } from './webhook/update-webhook.ts'

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
  listRoutes('Proofs', {
    getCheckpoint,
    getConsistency,
    getTlogCheckpoint,
    getTile,
    getEventProof,
    getServiceKeys,
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
    getExportManifest,
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
