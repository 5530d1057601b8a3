import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { Compile } from 'typebox/compile'
import type { TestResponse } from '../harness/app/start-app.ts'
import { cancelExport } from './cases/cancel-export.ts'
import { createEvent } from './cases/create-event.ts'
import { createEventBatch } from './cases/create-event-batch.ts'
import { createExport } from './cases/create-export.ts'
import { createWebhook } from './cases/create-webhook.ts'
import { createWorkspaceKey } from './cases/create-workspace-key.ts'
import { deleteWebhook } from './cases/delete-webhook.ts'
import { disableWebhook } from './cases/disable-webhook.ts'
import { downloadExport } from './cases/download-export.ts'
import { enableWebhook } from './cases/enable-webhook.ts'
import { finishWebhookRotation } from './cases/finish-webhook-rotation.ts'
import { getCheckpoint } from './cases/get-checkpoint.ts'
import { getConsistency } from './cases/get-consistency.ts'
import { getEvent } from './cases/get-event.ts'
import { getEventProof } from './cases/get-event-proof.ts'
import { getExport } from './cases/get-export.ts'
import { getExportManifest } from './cases/get-export-manifest.ts'
import { getFeed } from './cases/get-feed.ts'
import { getHealth } from './cases/get-health.ts'
import { getKeyStatus } from './cases/get-key-status.ts'
import { getReady } from './cases/get-ready.ts'
import { getServiceKeys } from './cases/get-service-keys.ts'
import { getTile } from './cases/get-tile.ts'
import { getTlogCheckpoint } from './cases/get-tlog-checkpoint.ts'
import { getWebhook } from './cases/get-webhook.ts'
import { getWebhookDelivery } from './cases/get-webhook-delivery.ts'
import { getWorkspace } from './cases/get-workspace.ts'
import { listEventTypes } from './cases/list-event-types.ts'
import { listEvents } from './cases/list-events.ts'
import { listExports } from './cases/list-exports.ts'
import { listProjects } from './cases/list-projects.ts'
import { listWebhookDeliveries } from './cases/list-webhook-deliveries.ts'
import { listWebhooks } from './cases/list-webhooks.ts'
import { listWorkspaces } from './cases/list-workspaces.ts'
import { preflightExport } from './cases/preflight-export.ts'
import { redeliverWebhookDelivery } from './cases/redeliver-webhook-delivery.ts'
import { redeliverWebhookWindow } from './cases/redeliver-webhook-window.ts'
import { rerunExport } from './cases/rerun-export.ts'
import { rotateKey } from './cases/rotate-key.ts'
import { rotateWebhookSecret } from './cases/rotate-webhook-secret.ts'
import { testWebhook } from './cases/test-webhook.ts'
import { updateWebhook } from './cases/update-webhook.ts'
import {
  assertDocumented,
  findComponent,
  findCoverageGaps,
  type OperationCases,
  readCommitted,
  walk,
} from './driver.ts'
import { ownEvent } from './own-event.ts'
import { ownExport } from './own-export.ts'
import { ownDelivery, ownWebhook } from './own-webhook.ts'
import { openWorld, type Tenant, type World } from './world.ts'

const CASES: Readonly<Record<string, OperationCases>> = {
  cancelExport,
  createEvent,
  createEventBatch,
  createExport,
  createWebhook,
  createWorkspaceKey,
  deleteWebhook,
  disableWebhook,
  downloadExport,
  enableWebhook,
  finishWebhookRotation,
  getCheckpoint,
  getConsistency,
  getEvent,
  getEventProof,
  getExport,
  getExportManifest,
  getFeed,
  getHealth,
  getKeyStatus,
  getReady,
  getServiceKeys,
  getTile,
  getTlogCheckpoint,
  getWebhook,
  getWebhookDelivery,
  getWorkspace,
  listEvents,
  listEventTypes,
  listExports,
  listProjects,
  listWebhookDeliveries,
  listWebhooks,
  listWorkspaces,
  preflightExport,
  redeliverWebhookDelivery,
  redeliverWebhookWindow,
  rerunExport,
  rotateKey,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook,
}

const world = await openWorld(process.env)
after(() => world[Symbol.asyncDispose]())
const committed = readCommitted()
const operations = walk(committed)

test('the served document matches the committed one (otherwise run npm run generate)', async () => {
  assert.deepEqual((await world.call('GET', '/openapi.json')).json, committed)
})

test('every documented status of every operation has a case, and every case is documented', () => {
  assert.deepEqual(findCoverageGaps(operations, CASES), [])
})

for (const operation of operations) {
  for (const { status, code, when, send } of CASES[operation.operationId]?.cases ?? []) {
    test(`${operation.operationId} returns ${status} when ${when}`, async (t) => {
      const response = await send(world)
      if (response === null) {
        t.skip('this deployment cannot show it')
        return
      }
      assert.deepEqual([response.status, response.json?.code], [status, code], response.text)
      assertDocumented(operation, response)
    })
  }
}

test('every line of a JSONL export and every column of a CSV export matches the document', async () => {
  const key = world.tenants.owner.workspaceKey
  const full = {
    projectId: world.tenants.owner.project.id,
    actor: { id: 'u1', email: 'u1@example.com', role: 'admin' },
    resource: { type: 'invoice', id: '1' },
    metadata: { amount: 1 },
  }
  for (const parts of [{}, full]) {
    const body = { category: 'contract', action: 'exported', ...parts }
    assert.equal((await world.call('POST', '/v1/events', { key, body })).status, 201)
  }
  const fileOf = async (format: string) => {
    const body = { source: 'HOT', format }
    const { json } = await world.call('POST', '/v1/exports', { key, body })
    return (await world.call('GET', `/v1/exports/${json.jobId}/download`, { key })).text
  }
  const schema = findComponent(committed, 'ExportRow')
  const lines = (await fileOf('JSONL')).trimEnd().split('\n')
  for (const line of lines) {
    const row = JSON.parse(line)
    assert.deepEqual(Compile(schema).Errors(row), [], line)
    assert.deepEqual(Object.keys(row), Object.keys(schema.properties))
  }
  const download = operations.find(({ operationId }) => operationId === 'downloadExport')
  const { 'x-columns': columns } = download?.responses['200']?.content?.['text/csv'] ?? {}
  assert.equal((await fileOf('CSV')).split('\r\n', 1)[0], columns?.join(','))
})

/** Returns an id of each kind, by parameter name. */
const IDS: Record<string, (world: World, tenant: Tenant) => Promise<string>> = {
  workspaceId: async (_, { workspace }) => workspace.id,
  projectId: async (_, { project }) => project.id,
  keyId: async ({ call }, { companyKey }) =>
    (await call('GET', '/v1/keys/status', { key: companyKey })).json.id,
  eventId: ownEvent,
  webhookId: ownWebhook,
  deliveryId: ownDelivery,
  jobId: ownExport,
  // No tree is that large, so it is as unknown as any other text.
  tile: async () => '9/999',
}

for (const { operationId, method, path, parameters = [] } of operations) {
  for (const { name, in: location } of parameters.filter((parameter) => isId(parameter))) {
    test(`${operationId} reveals nothing about another tenant’s ${name}`, async () => {
      const { owner, stranger } = world.tenants
      const idOf = IDS[name]
      assert(idOf, `add an entry for ${name} to IDS`)
      const { body, query = '' } = CASES[operationId] ?? {}
      // All other ids in the path belong to the stranger.
      let ownPath = path
      for (const [, other = ''] of path.matchAll(/\{(\w+)\}/g)) {
        const ownId = other === name ? undefined : IDS[other]
        if (ownId) ownPath = ownPath.replace(`{${other}}`, await ownId(world, stranger))
      }
      for (const key of [stranger.companyKey, stranger.workspaceKey]) {
        const responseFor = async (id: string) => {
          const target =
            location === 'path'
              ? `${ownPath.replace(`{${name}}`, id)}${query}`
              : `${ownPath}?${name}=${id}`
          return comparable(await world.call(method, target, { key, body }))
        }
        const foreign = await responseFor(await idOf(world, owner))
        assert.deepEqual(foreign, await responseFor(randomUUID()))
        assert(foreign.status !== 400 && foreign.status < 500, JSON.stringify(foreign))
      }
    })
  }
}

function isId({
  name,
  in: location,
  schema,
}: {
  name: string
  in: string
  schema: object
}): boolean {
  return (
    location === 'path' || ('format' in schema && schema.format === 'uuid' && name.endsWith('Id'))
  )
}

/** Everything that must not differ: all but the trace id, the time and the rate limit state. */
function comparable({ status, headers, text, json }: TestResponse) {
  const changing = /^(x-trace-id|date|ratelimit-.*|x-hot-since)$/
  return {
    status,
    headers: [...headers].filter(([name]) => !changing.test(name)),
    body: json?.traceId === undefined ? text : text.replace(json.traceId, '<trace id>'),
  }
}
