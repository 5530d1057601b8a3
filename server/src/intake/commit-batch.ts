import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'pg'
import {
  type AppendResult,
  awaitStandby,
  type HeadMove,
  listFreeHeads,
  lockHeads,
  readHeads,
  sendAppend,
} from '../ledger/append-store.ts'
import type { WorkspaceId } from '../platform/id.ts'
import { isReroute, SQLSTATE, sqlStateOf } from '../platform/pg/database.ts'
import { type Batch, createBatch, type Seal, sealItems } from './batch.ts'
import type { HeadCache } from './head-cache.ts'
import type { Outcome, PendingItem } from './pending-item.ts'
import type { SealSources } from './seal-batch.ts'

export type CommitDeps = {
  heads: HeadCache
  sources: () => SealSources
  /** Called on every try, for the metrics. */
  onTry?: (tries: number) => void
  /** Called for each head that was moved. */
  onMoved?: ((move: HeadMove) => void) | undefined
}

type Commit = CommitDeps & { client: Client; batch: Batch }
type Items = readonly PendingItem[]

/**
 * Seals and encodes a batch while the previous one is in flight, so that no caller waits for this work. The
 * seal is on the heads that the batch in flight is expected to leave. Does nothing if a head is unknown,
 * contended or locked.
 */
export function sealAhead(
  batch: Batch,
  inFlight: Batch | null,
  { heads, sources }: CommitDeps,
): void {
  const moves = inFlight?.seal?.moves ?? []
  const expected = heads.expectedOf(workspaceIdsOf(batch.leaders), moves)
  if (expected) sealItems(batch, batch.leaders, expected, sources())
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
export async function commitBatch(commit: Commit): Promise<Outcome[]> {
  const { batch, onTry } = commit
  const { items, leaders, leaderOf, outcomes } = batch
  let rest = leaders
  for (let tries = 1; rest.length > 0 && tries <= TRIES_MAX; tries += 1) {
    onTry?.(tries)
    rest = await commitOnce(commit, rest)
  }
  for (const item of rest) outcomes.set(item, { kind: 'crowded' })
  const orphans: PendingItem[] = []
  for (const [follower, leader] of leaderOf) {
    const first = outcomes.get(leader)
    assert(first, 'a leader has an outcome')
    const repeat = repeatOf(first, follower, leader)
    if (repeat) outcomes.set(follower, repeat)
    else orphans.push(follower)
  }
  if (orphans.length > 0) {
    const others = await commitBatch({ ...commit, batch: createBatch(orphans, batch.writer) })
    // There is an outcome for every orphan.
    orphans.forEach((item, index) => outcomes.set(item, others[index]!))
  }
  return items.map((item) => {
    const outcome = outcomes.get(item)
    assert(outcome, 'every item has an outcome')
    return outcome
  })
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
async function commitOnce(commit: Commit, items: Items): Promise<Items> {
  const { heads } = commit
  const locked = workspaceIdsOf(items).filter((id) => heads.isLocked(id))
  if (locked.length > 0) return await refuseLocked(commit, items, locked)
  const isContended = items.some((item) => heads.isContended(item.event.workspaceId))
  try {
    return await (isContended ? commitLocked(commit, items) : commitOnKnownHeads(commit, items))
  } catch (error) {
    const code = sqlStateOf(error)
    if (code !== null && (RETRYABLE.has(code) || isReroute(error))) {
      for (const item of items) heads.noteMiss(item.event.workspaceId)
      return items
    }
    if (code === SQLSTATE.LOCK_NOT_AVAILABLE) {
      const suspects = workspaceIdsOf(items)
      const free = await refuseLocked(commit, items, suspects)
      // If no head is locked, the lock is on something that all workspaces need.
      if (free.length < items.length) return free
    }
    if (code === null || !ROW_ERROR.test(code)) throw error
    return await isolate(commit, items)
  }
}

function workspaceIdsOf(items: Items): WorkspaceId[] {
  return [...new Set(items.map((item) => item.event.workspaceId))]
}

/**
 * Handles a head that another transaction, such as one an operator left open, locks for longer than a batch
 * waits. Finds the locked workspaces among the suspects, refuses their items so that no other workspace has
 * to wait, and returns the rest.
 */
async function refuseLocked(
  { client, batch, heads }: Commit,
  items: Items,
  suspects: readonly WorkspaceId[],
): Promise<Items> {
  const free = await findFree(client, suspects)
  for (const id of suspects) {
    if (free.has(id)) heads.noteFree(id)
    else heads.noteLocked(id)
  }
  return items.filter((item) => {
    const isLocked = heads.isLocked(item.event.workspaceId)
    if (isLocked) batch.outcomes.set(item, { kind: 'crowded' })
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
async function isolate(commit: Commit, items: Items): Promise<Items> {
  const [only] = items
  if (items.length === 1 && only) {
    commit.batch.outcomes.set(only, { kind: 'refused' })
    return []
  }
  const middle = Math.ceil(items.length / 2)
  const first = await commitOnce(commit, items.slice(0, middle))
  const second = await commitOnce(commit, items.slice(middle))
  return [...first, ...second]
}

async function commitOnKnownHeads(commit: Commit, items: Items): Promise<Items> {
  const { client, batch, heads, sources } = commit
  const unknown = workspaceIdsOf(items).filter((id) => !heads.get(id))
  if (unknown.length > 0) {
    for (const [id, head] of await readHeads(client, unknown)) heads.set(id, head)
  }
  const ahead = batch.seal
  const isUsable = ahead?.items === items && isOnHeads(ahead, heads)
  const seal = isUsable ? ahead : sealItems(batch, items, heads.view(), sources())
  try {
    const result = await sendAppend(client, seal.messages)
    if (result.isSynchronous && result.moved.size === 0) await awaitStandby(client)
    return settleItems(commit, seal, result)
  } finally {
    batch.seal = null
  }
}

/** Checks that the previous batch left the heads as expected. If it didn't, the early seals are discarded. */
function isOnHeads({ moves }: Seal, heads: HeadCache): boolean {
  return moves.every(({ workspaceId, from }) => heads.get(workspaceId)?.hash === from.hash)
}

/** Commits with the heads locked, for workspaces that several nodes write to at the same time. */
async function commitLocked(commit: Commit, items: Items): Promise<Items> {
  const { client, batch, sources } = commit
  const workspaceIds = workspaceIdsOf(items).toSorted()
  await client.query('begin')
  try {
    const locked = await lockHeads(client, workspaceIds)
    const seal = sealItems(batch, items, locked, sources())
    const result = await sendAppend(client, seal.messages)
    await client.query('commit')
    if (result.isSynchronous && result.moved.size === 0) await awaitStandby(client)
    return settleItems(commit, seal, result)
  } catch (error) {
    // On a broken connection the rollback fails too, and the first error is the one to report.
    await client.query('rollback').catch(() => {})
    throw error
  } finally {
    batch.seal = null
  }
}

function settleItems(
  { batch, heads, onMoved }: Commit,
  seal: Seal,
  { moved, replays }: AppendResult,
): Items {
  const { outcomes } = batch
  const workspacesWithReplays = new Set<WorkspaceId>()
  for (const [index, { eventId, bodyCheck }] of replays) {
    const item = seal.keyItems[index]
    assert(item?.key, 'a replay belongs to a key of the batch')
    workspacesWithReplays.add(item.event.workspaceId)
    const hasOtherBody = item.key.bodyCheck !== bodyCheck
    outcomes.set(item, { kind: 'replayed', id: eventId, hasOtherBody, storedCheck: bodyCheck })
  }
  for (const move of seal.moves) {
    const { workspaceId, to } = move
    if (moved.has(workspaceId)) {
      heads.set(workspaceId, to)
      onMoved?.(move)
    } else if (!workspacesWithReplays.has(workspaceId)) heads.noteMiss(workspaceId)
  }
  return seal.items.filter((item, index) => {
    if (moved.has(item.event.workspaceId)) {
      const row = seal.rows[index]
      assert(row, 'every item has its row')
      outcomes.set(item, { kind: 'stored', id: row.event.id })
    }
    return !outcomes.has(item)
  })
}
