import { createHash } from 'node:crypto'
import { CSV_HEADER } from '../../outlet/export/format/format-csv.ts'
import type { JsonObject } from './json-object.ts'
import {
  EVENT_PROOF_EXAMPLE,
  MANIFEST_WORKSPACE_EXAMPLE,
  PROOF_EXAMPLES,
} from './proof-examples.ts'

const EVENT_ID = '018f4e5a-0000-7000-8000-000000000001'
const COMPANY_ID = '018f0000-0000-7000-8000-00000000c001'
const WORKSPACE_ID = '018f0000-0000-7000-8000-00000000a001'
const PROJECT_ID = '018f0000-0000-7000-8000-00000000b001'
const WEBHOOK_ID = '018f4e5a-0000-7000-8000-00000000e001'
export const DELIVERY_ID = '018f4e5a-0000-7000-8000-00000000d001'
const JOB_ID = '018f4e5a-0000-7000-8000-00000000f001'
export const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'

const SENT = {
  category: 'auth',
  action: 'user.login',
  actor: { id: 'u1', email: 'ada@example.com', role: 'admin' },
  resource: { type: 'session', id: 's1' },
  metadata: { ip: '203.0.113.9', success: true },
}
const EventInput = {
  ...SENT,
  timestamp: '2024-05-06T07:08:09.010Z',
  projectId: PROJECT_ID,
  idempotencyKey: 'login-4711',
}

/** The first event of the test vectors, so that readers can verify its hash and its signature. */
const Event = {
  id: EVENT_ID,
  seq: 1,
  timestamp: '2024-05-06T07:08:09.010Z',
  receivedAt: '2024-05-06T07:08:09.123Z',
  companyId: COMPANY_ID,
  workspaceId: WORKSPACE_ID,
  projectId: PROJECT_ID,
  ...SENT,
  traceId: TRACE_ID,
  hash: 'd045545150426e5e9a03dd41e3eee0e519bbec1071caccd574ee30e7f2ca1d4c',
  prevHash: '0'.repeat(64),
}
const { seq, receivedAt, ...DeliveredEvent } = Event
export const ROW = {
  ...Event,
  sealed: {
    actor: '4f09ed8ddb7cbb03c11c8cd40abb7e0a1c31bb5c12acff912ab9004a6069b67e',
    metadata: '5ec4a996f73e8cdd58ec609292ee0d403701332d94dc8ea087154752a098718f',
    resource: '073136d183a80e5ba542784d062138077cd9bd18c4d785a5968a7f63d530a482',
  },
  salts: {
    actor: '3261b4a8fbe54b47c0109b1cc71a9cb5',
    metadata: 'c3a6a8530dbb478fb70a6ca8c7263a94',
    resource: 'df3327a1ccb98669d3f6b9f60135b3c7',
  },
}

const CSV_CELLS = [
  EVENT_ID,
  seq,
  Event.timestamp,
  receivedAt,
  COMPANY_ID,
  WORKSPACE_ID,
  PROJECT_ID,
  'auth,user.login,u1,ada@example.com,admin,session,s1',
  '"{""ip"":""203.0.113.9"",""success"":true}"',
  TRACE_ID,
  Event.hash,
  Event.prevHash,
]

/** The lines of a download, by content type. */
export const FILE_EXAMPLES = {
  'application/x-ndjson': `${JSON.stringify(ROW)}\n`,
  'text/csv': `${CSV_HEADER}${CSV_CELLS.join(',')}\r\n`,
}

const WorkspaceInfo = {
  id: WORKSPACE_ID,
  name: 'Production',
  system: false,
  createdAt: '2024-05-06T07:00:00.000Z',
}

const FILTER = { categories: ['auth'], actions: ['user.*'] }
const WEBHOOK = {
  id: WEBHOOK_ID,
  name: 'Sign-ins',
  url: 'https://hooks.customer.example/annals',
  status: 'ENABLED',
  events: ['AUDIT_EVENT_CREATED'],
  projectId: null,
  filter: FILTER,
  headerNames: ['authorization'],
  secretLabel: 'production',
  createdAt: '2024-05-06T07:00:00.000Z',
}
const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const Webhook = {
  ...WEBHOOK,
  filteredCount: 3,
  disabledReason: null,
  nextSecretAt: null,
  lastSuccessAt: '2024-05-06T07:08:09.310Z',
  lastFailureAt: null,
  failureCount: 0,
  updatedAt: '2024-05-06T07:00:00.000Z',
}

const Delivery = {
  id: DELIVERY_ID,
  webhookId: WEBHOOK_ID,
  eventId: EVENT_ID,
  eventSeq: 1,
  status: 'SUCCEEDED',
  attempt: 1,
  sequence: 1,
  url: WEBHOOK.url,
  responseStatus: 204,
  durationMs: 87,
  errorClass: null,
  failureReason: null,
  isTest: false,
  nextAttemptAt: null,
  createdAt: '2024-05-06T07:08:09.050Z',
  updatedAt: '2024-05-06T07:08:09.310Z',
}
const DeliveryAttempt = {
  attempt: 1,
  url: WEBHOOK.url,
  startedAt: '2024-05-06T07:08:09.220Z',
  durationMs: 87,
  responseStatus: 204,
  errorClass: null,
  message: null,
  excerpt: '',
}

const FILTERS = { from: '2024-05-01T00:00:00Z', to: '2024-06-01T00:00:00Z', category: 'auth' }
const ExportInput = {
  name: 'Sign-ins in May',
  source: 'HOT',
  format: 'JSONL',
  filters: FILTERS,
  limit: 10_000,
}
const ExportJob = {
  id: JOB_ID,
  name: 'Sign-ins in May',
  status: 'SUCCEEDED',
  source: 'HOT',
  format: 'JSONL',
  filters: FILTERS,
  evidence: 'NONE',
  rowLimit: '10000',
  rowsExported: '1',
  truncated: false,
  sha256: createHash('sha256').update(FILE_EXAMPLES['application/x-ndjson']).digest('hex'),
  bytes: String(FILE_EXAMPLES['application/x-ndjson'].length),
  createdAt: '2024-06-03T09:00:00.000Z',
  startedAt: '2024-06-03T09:00:04.000Z',
  finishedAt: '2024-06-03T09:00:05.000Z',
  expiresAt: '2024-06-10T09:00:00.000Z',
  errorCode: null,
  errorMessage: null,
  failureSummary: null,
  retryHint: null,
  lastAttempt: null,
  rerunOf: null,
}

/** Examples of request and response bodies, by the name of their schema. */
export const EXAMPLES: Readonly<Record<string, JsonObject>> = {
  Health: { ok: true },
  EventInput,
  EventId: { id: EVENT_ID },
  Event,
  EventPage: { data: [Event], nextCursor: null },
  EventFeed: { data: [Event], next: 1 },
  EventBatch: { events: [EventInput] },
  EventBatchResults: { results: [{ id: EVENT_ID, status: 201 }] },
  DeliveredEvent,
  WorkspaceInfo,
  WorkspaceInfoList: { workspaces: [WorkspaceInfo] },
  WorkspaceProjects: {
    projects: [{ id: PROJECT_ID, name: 'Billing', createdAt: '2024-05-06T07:00:00.000Z' }],
  },
  EventTypePage: {
    data: [
      {
        category: 'billing',
        action: 'invoice.paid',
        count: 1_284,
        firstSeenAt: '2024-01-15T09:30:00.000Z',
        firstSeq: 310,
        lastSeenAt: '2024-05-06T07:08:09.123Z',
        lastSeq: 18_204,
        flags: ['DRIFT'],
        metadataKeys: [
          {
            path: ['amount'],
            types: ['number', 'string'],
            count: 1_284,
            firstSeenAt: '2024-01-15T09:30:00.000Z',
            lastSeenAt: '2024-05-06T07:08:09.123Z',
          },
        ],
        drift: [
          {
            kind: 'TYPE_ADDED',
            path: ['amount'],
            type: 'string',
            seenAt: '2024-05-06T07:08:09.123Z',
            eventId: EVENT_ID,
          },
        ],
        truncated: false,
      },
    ],
    nextCursor: null,
    truncated: false,
    fromSeq: 1,
    upToSeq: 18_204,
  },
  KeyStatus: {
    id: '018f4e5a-0000-7000-8000-00000000a101',
    prefix: 'annals_4fQ8Zx2LmN',
    scope: 'WORKSPACE',
    status: 'ACTIVE',
    expiresAt: '2025-05-06T00:00:00.000Z',
    lastUsedAt: '2024-05-06T07:08:00.000Z',
    lastUsedIp: '203.0.113.9',
    lastUsedEndpoint: 'POST /v1/events',
    healthScore: 90,
    companyId: COMPANY_ID,
    workspaceId: WORKSPACE_ID,
    plan: 'PRO',
    permissions: ['events:write'],
  },
  WebhookInput: {
    url: WEBHOOK.url,
    name: WEBHOOK.name,
    filter: FILTER,
    headers: { authorization: 'Bearer 6f1c5c0d' },
    secretLabel: 'production',
  },
  WebhookChange: { url: WEBHOOK.url },
  CreatedWebhook: { ...WEBHOOK, secret: SECRET },
  Webhook,
  WebhookFilter: FILTER,
  WebhookList: { webhooks: [Webhook] },
  WebhookStatusResult: { id: WEBHOOK_ID, status: 'ENABLED' },
  SecretRotation: { secretLabel: 'production, May', overlapSeconds: 3_600 },
  RotatedSecret: {
    id: WEBHOOK_ID,
    secret: SECRET,
    secretLabel: 'production, May',
    nextSecretAt: '2024-05-06T08:08:09.000Z',
  },
  FinishedRotation: { id: WEBHOOK_ID, nextSecretAt: null },
  TestReceipt: { deliveryId: DELIVERY_ID, sequence: 1 },
  Delivery,
  DeliveryPage: { data: [Delivery], nextCursor: null },
  DeliveryWithAttempts: { ...Delivery, attempts: [DeliveryAttempt] },
  RedeliveryWindow: { from: '2024-05-06T00:00:00Z', to: '2024-05-07T00:00:00Z' },
  RedeliveryResult: { redelivered: 12, made: 3, isComplete: true, continueFrom: null },
  ...PROOF_EXAMPLES,
  EventProof: { event: ROW, ...EVENT_PROOF_EXAMPLE },
  ExportInput,
  CreatedExport: { jobId: JOB_ID, status: 'PENDING' },
  ExportJob,
  ExportPage: { data: [ExportJob], nextCursor: null },
  ExportManifest: {
    version: 1,
    jobId: JOB_ID,
    format: ExportJob.format,
    filters: FILTERS,
    rows: 1,
    sha256: ExportJob.sha256,
    evidence: ExportJob.evidence,
    workspaces: [{ workspaceId: WORKSPACE_ID, ...MANIFEST_WORKSPACE_EXAMPLE }],
  },
  ExportStatusResult: { id: JOB_ID, status: 'CANCELED' },
  ExportPreflight: {
    rows: '1',
    stubs: '0',
    evidence: 'NONE',
    isEstimate: false,
    estimatedBytes: ExportJob.bytes,
    rowLimit: '10000',
    isCut: false,
    needsRestore: false,
  },
}

export function exampleOf({ $id }: JsonObject): { example?: JsonObject } {
  const example = typeof $id === 'string' ? EXAMPLES[$id] : undefined
  return example ? { example } : {}
}
