import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { verifyLink } from '../ledger/chain.ts'
import { createSaltSource } from '../ledger/commitment.ts'
import { type ChainHead, EMPTY_HEAD, headAfter } from '../ledger/event.ts'
import { idTimeMs, newId, type WorkspaceId } from '../platform/id.ts'
import type { PendingItem } from './pending-item.ts'
import { sealBatch } from './seal-batch.ts'

const NOW_MS = Date.parse('2026-03-01T12:00:00Z')
const SOURCES = { nowMs: NOW_MS, random: () => 0.5, drawSalts: createSaltSource() }
const COMPANY = newId<'company'>()
const WORKSPACES = Array.from({ length: 4 }, () => newId<'workspace'>())

function itemOf(workspaceId: WorkspaceId, action: string, key: string | null): PendingItem {
  return {
    event: {
      companyId: COMPANY,
      workspaceId,
      projectId: null,
      timestampMs: NOW_MS,
      receivedAtMs: NOW_MS,
      category: 'test',
      action,
      traceId: null,
      actor: '{"id":"ada"}',
      metadata: null,
      resource: null,
    },
    facets: { actorId: 'ada', actorEmail: null, resourceType: null, resourceId: null },
    key: key === null ? null : { keyDigest: key, bodyCheck: 7 },
  }
}

/** Heads of chains with `seq` events, the last one sealed at `lastMs`. */
function headsAt(seq: number, lastMs: number): Map<WorkspaceId, ChainHead> {
  return new Map(
    WORKSPACES.map((workspaceId) => [
      workspaceId,
      seq === 0 ? EMPTY_HEAD : { seq, hash: 'ab'.repeat(32), lastId: newId<'event'>(lastMs) },
    ]),
  )
}

const anyItems = fc
  .array(fc.tuple(fc.nat(WORKSPACES.length - 1), fc.boolean()), { minLength: 1, maxLength: 30 })
  .map((picks) =>
    picks.map(([workspace, hasKey], index) =>
      itemOf(
        WORKSPACES[workspace] ?? newId(),
        `action ${index}`,
        hasKey ? String(index).padStart(32, '0') : null,
      ),
    ),
  )

test('each workspace of a batch gets consecutive sequence numbers, in order of arrival', () => {
  const anyLastMs = fc.integer({ min: NOW_MS - 10, max: NOW_MS + 10 })
  fc.assert(
    fc.property(anyItems, fc.nat(3), anyLastMs, (items, seq, lastMs) => {
      const heads = headsAt(seq, lastMs)
      const { rows, moves } = sealBatch(items, heads, SOURCES)
      const ends = new Map(heads)
      for (const [index, { event, facets }] of rows.entries()) {
        assert.equal(event.action, items[index]?.event.action)
        assert.equal(facets, items[index]?.facets)
        const head = ends.get(event.workspaceId)
        assert(head)
        assert.deepEqual(verifyLink(head, event), { ok: true })
        ends.set(event.workspaceId, headAfter(event))
      }
      for (const { workspaceId, from, to } of moves) {
        assert.deepEqual(from, heads.get(workspaceId))
        assert.deepEqual(to, ends.get(workspaceId))
      }
    }),
  )
})

test('advances exactly the heads of the workspaces in the batch, once each, in lock order', () => {
  fc.assert(
    fc.property(anyItems, (items) => {
      const { moves } = sealBatch(items, headsAt(2, NOW_MS), SOURCES)
      const expected = [...new Set(items.map((item) => item.event.workspaceId))].toSorted()
      assert.deepEqual(
        moves.map(({ workspaceId }) => workspaceId),
        expected,
      )
    }),
  )
})

test('maps each idempotency key to the event of its own item', () => {
  fc.assert(
    fc.property(anyItems, (items) => {
      const batch = sealBatch(items, headsAt(0, 0), SOURCES)
      assert.equal(batch.items, items)
      assert.deepEqual(
        batch.keyItems,
        items.filter(({ key }) => key !== null),
      )
      const expected = items.flatMap((item, index) => {
        const eventId = batch.rows[index]?.event.id
        return item.key ? [{ workspaceId: item.event.workspaceId, eventId, ...item.key }] : []
      })
      assert.deepEqual(batch.keys, expected)
    }),
  )
})

test('does not modify the given heads, so that a failed batch can be sealed again', () => {
  const heads = headsAt(5, NOW_MS)
  const before = structuredClone(heads)
  const items = WORKSPACES.map((workspaceId) => itemOf(workspaceId, 'a', null))
  const first = sealBatch(items, heads, SOURCES)
  const second = sealBatch(items, heads, SOURCES)
  assert.deepEqual(heads, before)
  assert.deepEqual(
    second.rows.map(({ event }) => event.seq),
    first.rows.map(({ event }) => event.seq),
  )
})

test('no two events share a salt', () => {
  const [workspaceId = newId()] = WORKSPACES
  const items = Array.from({ length: 300 }, () => itemOf(workspaceId, 'same', null))
  const { rows } = sealBatch(items, headsAt(0, 0), SOURCES)
  assert.equal(new Set(rows.map(({ event }) => event.salts)).size, 300)
  assert.equal(new Set(rows.map(({ event }) => event.sealed)).size, 300)
})

test('a workspace without a head fails the batch instead of guessing', () => {
  const unknown = itemOf(newId(), 'a', null)
  assert.throws(() => sealBatch([unknown], headsAt(1, NOW_MS), SOURCES), /has a head/)
})

test('an id never contains a time before receipt, even if the clock is set back before sealing', () => {
  const [workspaceId = newId()] = WORKSPACES
  const items = [itemOf(workspaceId, 'action', null)]
  const sources = { ...SOURCES, nowMs: NOW_MS - 86_400_000 }
  for (const heads of [headsAt(0, 0), headsAt(3, NOW_MS - 1), headsAt(3, NOW_MS + 1)]) {
    const [row] = sealBatch(items, heads, sources).rows
    assert(row && idTimeMs(row.event.id) >= NOW_MS)
  }
})
