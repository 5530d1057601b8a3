import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'pg'
import {
  type AppendResult,
  appendEvents,
  awaitStandby,
  encodeAppend,
  listFreeHeads,
  lockHeads,
  readHeads,
  sendAppend,
} from '../ledger/append-store.ts'
import type { WorkspaceId } from '../platform/id.ts'
import { isReroute, SQLSTATE, sqlStateOf } from '../platform/pg.ts'
import type { BindWriter } from '../platform/pg-bind.ts'
import type { HeadCache } from './head-cache.ts'
import type { Outcome, PendingItem } from './pending-item.ts'
import { sealBatch, type SealedBatch, type SealSources } from './seal-batch.ts'

export type CommitDeps = {
  heads: HeadCache
  /** Used by this batch only, until its outcome is known. */
  writer: BindWriter
  sources: () => SealSources
  /** Called on every try, for the metrics. */
  onTry?: (tries: number) => void
}

/** A batch that is sealed and encoded early, on the heads that the batch in flight is expected to leave. */
export type SealedAhead = { batch: SealedBatch; messages: Buffer }

/**
 * Seals and encodes a batch while the previous one is in flight, so that no caller waits for
 * this work. Returns null if that isn't possible: a head is unknown, contended or locked, or a
 * key appears twice in the batch.
 */
export function sealAhead(
  items: readonly PendingItem[],
  { heads, sources, writer }: CommitDeps,
): SealedAhead | null {
  if (splitRepeats(items).followers.size > 0) return null
  const expected = heads.expectedOf(new Set(items.map((item) => item.event.workspaceId)))
  if (!expected) return null
  const batch = sealBatch(items, expected, sources())
  return { batch, messages: encodeAppend(batch, writer) }
}

/** With the heads locked, the second try succeeds. The others are for unexpected failures. */
const TRIES_MAX = 5

/**
 * Commits a batch and returns the outcome of each item, in order. Throws on an error that isn't the fault
 * of a row: the outcome is then unknown, and the writer discards its cached heads.
 *
 *   known heads ──seal, or sealed ahead──▶ append ──▶ stored
 *                           ├─ key is already stored ──▶ replayed; retry the workspace's other items
 *                           └─ another node moved the head ──▶ retry with the heads locked
 */
export async function commitBatch(
  client: Client,
  items: readonly PendingItem[],
  deps: CommitDeps,
  ahead: SealedAhead | null = null,
): Promise<Outcome[]> {
  const outcomes = new Map<PendingItem, Outcome>()
  const { leaders, followers } = splitRepeats(items)
  let rest: readonly PendingItem[] = leaders
  for (let tries = 1; rest.length > 0 && tries <= TRIES_MAX; tries += 1) {
    deps.onTry?.(tries)
    rest = await commitOnce(client, rest, outcomes, deps, tries === 1 ? ahead : null)
  }
  for (const item of rest) outcomes.set(item, { kind: 'crowded' })
  const orphans: PendingItem[] = []
  for (const [follower, leader] of followers) {
    const first = outcomes.get(leader)
    assert(first, 'a leader has an outcome')
    const repeat = repeatOf(first, follower, leader)
    if (repeat) outcomes.set(follower, repeat)
    else orphans.push(follower)
  }
  const others = orphans.length > 0 ? await commitBatch(client, orphans, deps) : []
  // There is an outcome for every orphan.
  orphans.forEach((item, index) => outcomes.set(item, others[index]!))
  return items.map((item) => {
    const outcome = outcomes.get(item)
    assert(outcome, 'every item has an outcome')
    return outcome
  })
}

/**
 * Finds keys that appear more than once in a batch: the first item is the event, the others are its replays.
 */
function splitRepeats(items: readonly PendingItem[]) {
  const byKey = new Map<string, PendingItem>()
  const leaders: PendingItem[] = []
  const followers = new Map<PendingItem, PendingItem>()
  for (const item of items) {
    const name = item.key && `${item.event.workspaceId}${item.key.keyDigest}`
    const leader = name === null ? undefined : byKey.get(name)
    if (leader) {
      followers.set(item, leader)
      continue
    }
    if (name !== null) byKey.set(name, item)
    leaders.push(item)
  }
  return { leaders, followers }
}

/**
 * Null if the leader was refused and the follower has a different body. It then
 * has to be committed by itself.
 */
function repeatOf(first: Outcome, follower: PendingItem, leader: PendingItem): Outcome | null {
  const bodyCheck = follower.key?.bodyCheck
  if (first.kind === 'crowded') return first
  if (first.kind === 'refused') return bodyCheck === leader.key?.bodyCheck ? first : null
  const storedCheck = first.kind === 'replayed' ? first.storedCheck : leader.key?.bodyCheck
  assert(storedCheck !== undefined, 'a leader has a key')
  const hasOtherBody = bodyCheck !== storedCheck
  return { kind: 'replayed', id: first.id, hasOtherBody, storedCheck }
}

/** Tries once. Sets the outcomes and returns the items to retry. */
async function commitOnce(
  client: Client,
  items: readonly PendingItem[],
  outcomes: Map<PendingItem, Outcome>,
  deps: CommitDeps,
  ahead: SealedAhead | null = null,
): Promise<readonly PendingItem[]> {
  const { heads } = deps
  const locked = workspaceIdsOf(items).filter((id) => heads.isLocked(id))
  if (locked.length > 0) return await refuseLocked(client, items, locked, outcomes, heads)
  const isContended = items.some((item) => heads.isContended(item.event.workspaceId))
  try {
    return isContended
      ? await commitLocked(client, items, outcomes, deps)
      : await commitOnKnownHeads(client, items, outcomes, deps, ahead)
  } catch (error) {
    const code = sqlStateOf(error)
    if (code !== null && (RETRYABLE.has(code) || isReroute(error))) {
      for (const item of items) heads.noteMiss(item.event.workspaceId)
      return items
    }
    if (code === SQLSTATE.LOCK_NOT_AVAILABLE) {
      const suspects = workspaceIdsOf(items)
      const free = await refuseLocked(client, items, suspects, outcomes, heads)
      // If no head is locked, the lock is on something that all workspaces need.
      if (free.length < items.length) return free
    }
    if (code === null || !ROW_ERROR.test(code)) throw error
    return await isolate(client, items, outcomes, deps)
  }
}

function workspaceIdsOf(items: readonly PendingItem[]): WorkspaceId[] {
  return [...new Set(items.map((item) => item.event.workspaceId))]
}

/**
 * Handles a head that another transaction, such as one an operator left open, locks for longer than a batch
 * waits. Finds the locked workspaces among the suspects, refuses their items so that no other workspace has
 * to wait, and returns the rest.
 */
async function refuseLocked(
  client: Client,
  items: readonly PendingItem[],
  suspects: readonly WorkspaceId[],
  outcomes: Map<PendingItem, Outcome>,
  heads: HeadCache,
): Promise<readonly PendingItem[]> {
  const free = await findFree(client, suspects)
  for (const id of suspects) {
    if (free.has(id)) heads.noteFree(id)
    else heads.noteLocked(id)
  }
  return items.filter((item) => {
    const isLocked = heads.isLocked(item.event.workspaceId)
    if (isLocked) outcomes.set(item, { kind: 'crowded' })
    return !isLocked
  })
}

/** Check several times, because other nodes lock heads too, but only briefly. */
const LOCK_CHECKS_MAX = 3
const LOCK_CHECK_EVERY_MS = 10

async function findFree(
  client: Client,
  workspaceIds: readonly WorkspaceId[],
): Promise<ReadonlySet<WorkspaceId>> {
  const free = new Set<WorkspaceId>()
  for (let checks = 0; checks < LOCK_CHECKS_MAX && free.size < workspaceIds.length; checks += 1) {
    if (checks > 0) await delay(LOCK_CHECK_EVERY_MS)
    const others = workspaceIds.filter((id) => !free.has(id))
    for (const id of await listFreeHeads(client, others)) free.add(id)
  }
  return free
}

/** A unique violation means that a head in the cache was stale. The retry locks the heads and reads them. */
const RETRYABLE: ReadonlySet<string> = new Set([
  SQLSTATE.UNIQUE_VIOLATION,
  SQLSTATE.SERIALIZATION_FAILURE,
  SQLSTATE.DEADLOCK_DETECTED,
])
/** Data, integrity and limit errors: one of the rows is at fault. */
const ROW_ERROR = /^(22|23|54)/

/** Splits a batch in half until the row that the database refuses is alone, so that only its caller fails. */
async function isolate(
  client: Client,
  items: readonly PendingItem[],
  outcomes: Map<PendingItem, Outcome>,
  deps: CommitDeps,
): Promise<readonly PendingItem[]> {
  const [only] = items
  if (items.length === 1 && only) {
    outcomes.set(only, { kind: 'refused' })
    return []
  }
  const middle = Math.ceil(items.length / 2)
  const first = await commitOnce(client, items.slice(0, middle), outcomes, deps)
  const second = await commitOnce(client, items.slice(middle), outcomes, deps)
  return [...first, ...second]
}

async function commitOnKnownHeads(
  client: Client,
  items: readonly PendingItem[],
  outcomes: Map<PendingItem, Outcome>,
  { heads, sources, writer }: CommitDeps,
  ahead: SealedAhead | null,
): Promise<readonly PendingItem[]> {
  const unknown = new Set(
    items.map((item) => item.event.workspaceId).filter((id) => !heads.get(id)),
  )
  if (unknown.size > 0) {
    for (const [id, head] of await readHeads(client, [...unknown])) heads.set(id, head)
  }
  const { batch, messages } =
    ahead && isOnHeads(ahead.batch, heads) ? ahead : sealNow(items, { heads, sources, writer })
  heads.expect(new Map(batch.moves.map(({ workspaceId, to }) => [workspaceId, to])))
  try {
    const result = await sendAppend(client, messages)
    if (result.isSynchronous && result.moved.size === 0) await awaitStandby(client)
    return settle(batch, result, outcomes, heads)
  } finally {
    heads.expect(new Map())
  }
}

/** Checks that the previous batch left the heads as expected. If it didn't, the early seals are discarded. */
function isOnHeads({ moves }: SealedBatch, heads: HeadCache): boolean {
  return moves.every(({ workspaceId, from }) => heads.get(workspaceId)?.hash === from.hash)
}

function sealNow(
  items: readonly PendingItem[],
  { heads, sources, writer }: CommitDeps,
): SealedAhead {
  const batch = sealBatch(items, heads.view(), sources())
  return { batch, messages: encodeAppend(batch, writer) }
}

/** Commits with the heads locked, for workspaces that several nodes write to at the same time. */
async function commitLocked(
  client: Client,
  items: readonly PendingItem[],
  outcomes: Map<PendingItem, Outcome>,
  { heads, sources, writer }: CommitDeps,
): Promise<readonly PendingItem[]> {
  const workspaceIds = workspaceIdsOf(items).toSorted()
  await client.query('begin')
  try {
    const locked = await lockHeads(client, workspaceIds)
    const batch = sealBatch(items, locked, sources())
    const result = await appendEvents(client, batch, writer)
    await client.query('commit')
    if (result.isSynchronous && result.moved.size === 0) await awaitStandby(client)
    return settle(batch, result, outcomes, heads)
  } catch (error) {
    // On a broken connection the rollback fails too, and the first error is the one to report.
    await client.query('rollback').catch(() => {})
    throw error
  }
}

function settle(
  batch: SealedBatch,
  { moved, replays }: AppendResult,
  outcomes: Map<PendingItem, Outcome>,
  heads: HeadCache,
): readonly PendingItem[] {
  const workspacesWithReplays = new Set<WorkspaceId>()
  for (const [place, { eventId, bodyCheck }] of replays) {
    const item = batch.keyItems[place]
    assert(item?.key, 'a replay answers a key of the batch')
    workspacesWithReplays.add(item.event.workspaceId)
    const hasOtherBody = item.key.bodyCheck !== bodyCheck
    outcomes.set(item, { kind: 'replayed', id: eventId, hasOtherBody, storedCheck: bodyCheck })
  }
  for (const { workspaceId, to } of batch.moves) {
    if (moved.has(workspaceId)) heads.set(workspaceId, to)
    else if (!workspacesWithReplays.has(workspaceId)) heads.noteMiss(workspaceId)
  }
  return batch.items.filter((item, index) => {
    if (moved.has(item.event.workspaceId)) {
      const row = batch.rows[index]
      assert(row, 'every item has its row')
      outcomes.set(item, { kind: 'stored', id: row.event.id })
    }
    return !outcomes.has(item)
  })
}
