import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { canonicalJson } from '../../../ledger/canonical.ts'
import type { SealedEvent } from '../../../ledger/event.ts'
import { assertId } from '../../../platform/id.ts'
import { testBody, webhookBody } from './webhook-body.ts'

const FIELDS = [
  'id',
  'timestamp',
  'companyId',
  'workspaceId',
  'projectId',
  'category',
  'action',
  'actor',
  'resource',
  'metadata',
  'traceId',
  'hash',
  'prevHash',
]

const event: SealedEvent = {
  id: assertId('018f4e5a-0000-7000-8000-000000000001'),
  seq: 7,
  companyId: assertId('018f0000-0000-7000-8000-00000000c001'),
  workspaceId: assertId('018f0000-0000-7000-8000-00000000a001'),
  projectId: assertId('018f0000-0000-7000-8000-00000000b001'),
  timestampMs: Date.UTC(2024, 4, 6, 7, 8, 9, 10),
  receivedAtMs: Date.UTC(2024, 4, 6, 7, 8, 9, 123),
  category: 'auth',
  action: 'user.login',
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  actor: '{"email":"ada@example.com","id":"u1","role":"admin"}',
  resource: '{"id":"s1","type":"session"}',
  metadata: '{"ip":"203.0.113.9","success":true}',
  prevHash: '1'.repeat(64),
  hash: '2'.repeat(64),
  sealed: '{"actor":"aa"}',
  salts: '{"actor":"bb"}',
}

const testDelivery = {
  deliveryId: assertId<'delivery'>('018f4e5a-0000-7000-8000-00000000d001'),
  companyId: event.companyId,
  workspaceId: event.workspaceId,
  projectId: event.projectId,
  createdAtMs: Date.UTC(2024, 4, 6, 7, 8, 9, 10),
}

test('a body has exactly the fields of the contract, in order', () => {
  assert.equal(
    webhookBody(event),
    '{"id":"018f4e5a-0000-7000-8000-000000000001","timestamp":"2024-05-06T07:08:09.010Z"' +
      ',"companyId":"018f0000-0000-7000-8000-00000000c001"' +
      ',"workspaceId":"018f0000-0000-7000-8000-00000000a001"' +
      ',"projectId":"018f0000-0000-7000-8000-00000000b001","category":"auth","action":"user.login"' +
      ',"actor":{"email":"ada@example.com","id":"u1","role":"admin"}' +
      ',"resource":{"id":"s1","type":"session"},"metadata":{"ip":"203.0.113.9","success":true}' +
      `,"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","hash":"${'2'.repeat(64)}"` +
      `,"prevHash":"${'1'.repeat(64)}"}`,
  )
})

test('omits missing fields and keeps the rest unchanged', () => {
  const optional = ['projectId', 'actor', 'resource', 'metadata', 'traceId']
  fc.assert(
    fc.property(fc.subarray(optional), (absent) => {
      const nulls = Object.fromEntries(absent.map((name) => [name, null]))
      const body: unknown = JSON.parse(webhookBody({ ...event, ...nulls }))
      const whole = Object.entries(JSON.parse(webhookBody(event)))
      assert.deepEqual(body, Object.fromEntries(whole.filter(([name]) => !absent.includes(name))))
      assert.deepEqual(
        Object.keys(Object(body)),
        FIELDS.filter((name) => !absent.includes(name)),
      )
    }),
  )
})

test('sends any text and metadata unchanged', () => {
  const anyText = fc.string({ unit: 'grapheme' })
  const anyMetadata = fc.dictionary(anyText, fc.jsonValue({ maxDepth: 2, stringUnit: 'grapheme' }))
  fc.assert(
    fc.property(anyText, anyText, anyMetadata, (category, action, values) => {
      const metadata = canonicalJson({ ...values })
      const body = JSON.parse(webhookBody({ ...event, category, action, metadata }))
      assert.equal(body.category, category)
      assert.equal(body.action, action)
      assert.equal(canonicalJson(body.metadata), metadata)
    }),
  )
})

test('a test delivery is marked and has the shape of an event', () => {
  assert.deepEqual(JSON.parse(testBody(testDelivery)), {
    id: '018f4e5a-0000-7000-8000-00000000d001',
    timestamp: '2024-05-06T07:08:09.010Z',
    companyId: event.companyId,
    workspaceId: event.workspaceId,
    projectId: event.projectId,
    category: 'webhook',
    action: 'webhook.test',
    metadata: {
      test: true,
      note: 'This is a test of your webhook. It is not an event and is not part of any chain.',
    },
    hash: '0'.repeat(64),
    prevHash: '0'.repeat(64),
  })
})

test('a test of a webhook for the whole workspace has no project', () => {
  const body = JSON.parse(testBody({ ...testDelivery, projectId: null }))
  assert.equal('projectId' in body, false)
})

test('a test has the same bytes at every attempt', () => {
  assert.equal(testBody({ ...testDelivery }), testBody({ ...testDelivery }))
  const later = { ...testDelivery, createdAtMs: testDelivery.createdAtMs + 1 }
  assert.notEqual(testBody(later), testBody(testDelivery))
})
