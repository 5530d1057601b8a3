import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../platform/id.ts'
import { bytesOf, type PendingItem } from './pending-item.ts'

function itemOf(texts: { name?: string; actorId?: string; metadata?: string }): PendingItem {
  const { name = 'c', actorId = null, metadata = null } = texts
  return {
    event: {
      companyId: newId(),
      workspaceId: newId(),
      projectId: null,
      timestampMs: 0,
      receivedAtMs: 0,
      category: name,
      action: name,
      traceId: null,
      actor: actorId === null ? null : JSON.stringify({ id: actorId }),
      metadata,
      resource: null,
    },
    facets: { actorId, actorEmail: null, resourceType: null, resourceId: null },
    key: null,
  }
}

test('the size of an item includes its bytes in UTF-8, and indexed fields twice', () => {
  const smallest = bytesOf(itemOf({}))
  const added = (texts: Parameters<typeof itemOf>[0]) => bytesOf(itemOf(texts)) - smallest
  assert.equal(added({ metadata: 'x'.repeat(500) }), 500)
  assert.equal(added({ metadata: '名'.repeat(500) }), 1_500)
  assert.equal(added({ name: '名'.repeat(100) }), 2 * 2 * 300 - 4)
  assert.equal(added({ actorId: '名'.repeat(100) }), 2 * 300 + '{"id":""}'.length + 300)
})
