import type { paths } from '../../../api/schema.d.ts'

export type Operation =
  paths['/dashboard/keys/preflight']['post']['requestBody']['content']['application/json']['operation']

/**
 * The operations that can be checked, with their labels. A new operation without a label fails the build.
 */
const LABELS: Record<Operation, readonly [group: string, label: string]> = {
  createEvent: ['Events', 'send an event'],
  createEventBatch: ['Events', 'send a batch of events'],
  listEvents: ['Events', 'read events'],
  getEvent: ['Events', 'read one event'],
  getFeed: ['Events', 'follow the log'],
  listWorkspaces: ['Workspaces', 'list workspaces'],
  getWorkspace: ['Workspaces', 'read a workspace'],
  listProjects: ['Workspaces', 'list projects'],
  listEventTypes: ['Workspaces', 'list event types'],
  getKeyStatus: ['Keys', 'read its own status'],
  createWorkspaceKey: ['Keys', 'create a key'],
  rotateKey: ['Keys', 'rotate a key'],
  createWebhook: ['Webhooks', 'create a webhook'],
  listWebhooks: ['Webhooks', 'list webhooks'],
  getWebhook: ['Webhooks', 'read a webhook'],
  updateWebhook: ['Webhooks', 'change a webhook'],
  deleteWebhook: ['Webhooks', 'delete a webhook'],
  enableWebhook: ['Webhooks', 'enable a webhook'],
  disableWebhook: ['Webhooks', 'disable a webhook'],
  rotateWebhookSecret: ['Webhooks', 'rotate a webhook secret'],
  finishWebhookRotation: ['Webhooks', 'finish rotating a webhook secret'],
  testWebhook: ['Webhooks', 'send a test delivery'],
  listWebhookDeliveries: ['Webhooks', 'list deliveries'],
  getWebhookDelivery: ['Webhooks', 'read a delivery'],
  redeliverWebhookDelivery: ['Webhooks', 'redeliver an event'],
  redeliverWebhookWindow: ['Webhooks', 'resend missed events'],
  getCheckpoint: ['Proof', 'read a checkpoint'],
  getConsistency: ['Proof', 'prove that a checkpoint extends another'],
  getEventProof: ['Proof', 'prove an event'],
  getTlogCheckpoint: ['Proof', 'read a checkpoint as a transparency log'],
  getTile: ['Proof', 'read a tile of the log'],
  createExport: ['Exports', 'create an export'],
  getExport: ['Exports', 'read an export'],
  downloadExport: ['Exports', 'download an export'],
  getExportManifest: ['Exports', 'read the manifest of an export'],
  listExports: ['Exports', 'list exports'],
  preflightExport: ['Exports', 'estimate the size of an export'],
  rerunExport: ['Exports', 'rerun an export'],
  cancelExport: ['Exports', 'cancel an export'],
}

const OPERATIONS = Object.keys(LABELS) as Operation[] // The record has exactly these keys.

/** The options of the select, by group. */
export const OPERATION_GROUPS = [...new Set(Object.values(LABELS).map(([group]) => group))].map(
  (group) => ({
    group,
    items: OPERATIONS.filter((operation) => LABELS[operation][0] === group).map((operation) => ({
      value: operation,
      label: LABELS[operation][1],
    })),
  }),
)

export function operationText(operation: Operation): string {
  return LABELS[operation][1]
}
