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
  /** Of this batch alone, until its outcome is known. */
  writer: BindWriter
  sources: () => SealSources
  /** Told of every try, for the metrics. */
  onTry?: (tries: number) => void
}

/** A batch that is sealed and encoded before its turn, on the heads as the one before leaves them. */
export type SealedAhead = { batch: SealedBatch; messages: Buffer }

/**
 * Seals and encodes while the batch before is at the database, so that no caller waits for it.
 * Null when it takes more than that: a head is not known, or a key stands twice in the batch.
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

/** With the heads locked the second try succeeds; the rest is for unexpected failures. */
const TRIES_MAX = 5

/**
 * Commits a batch and says what became of each item, in their order. It throws only when the
 * database did not answer: then the outcome is unknown, and the writer reads the heads again.
 *
 *   known heads ──seal, or sealed ahead──▶ append ──▶ stored
 *                           ├─ key is stored already ──▶ replayed; its workspace's others go again
 *                           └─ another node moved the head ──▶ again, under a lock
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

/** The same key twice in one batch: the first is the event, the others are its replays. */
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

/** Null when its leader was refused and it is another event: then it stands for itself. */
function repeatOf(first: Outcome, follower: PendingItem, leader: PendingItem): Outcome | null {
  const bodyCheck = follower.key?.bodyCheck
  if (first.kind === 'crowded') return first
  if (first.kind === 'refused') return bodyCheck === leader.key?.bodyCheck ? first : null
  const storedCheck = first.kind === 'replayed' ? first.storedCheck : leader.key?.bodyCheck
  assert(storedCheck !== undefined, 'a leader has a key')
  const hasOtherBody = bodyCheck !== storedCheck
  return { kind: 'replayed', id: first.id, hasOtherBody, storedCheck }
}

/** One try. Fills in outcomes and returns the items that must go again. */
async function commitOnce(
  client: Client,
  items: readonly PendingItem[],
  outcomes: Map<PendingItem, Outcome>,
  deps: CommitDeps,
  ahead: SealedAhead | null = null,
): Promise<readonly PendingItem[]> {
  const { heads } = deps
  const locked = workspaceIdsOf(items).filter((id) => heads.isLocked(id))
  if (locked.length > 0) return await setLockedAside(client, items, locked, outcomes, heads)
  const isContended = items.some((item) => heads.isContended(item.event.workspaceId))
  try {
    return isContended
      ? await commitLocked(client, items, outcomes, deps)
      : await commitOnKnownHeads(client, items, outcomes, deps, ahead)
  } catch (error) {
    const code = sqlStateOf(error)
    if (code !== null && (RETRIED.has(code) || isReroute(error))) {
      for (const item of items) heads.noteMiss(item.event.workspaceId)
      return items
    }
    if (code === SQLSTATE.LOCK_NOT_AVAILABLE) {
      const suspects = workspaceIdsOf(items)
      const free = await setLockedAside(client, items, suspects, outcomes, heads)
      // If no head is locked, something is that all workspaces need.
      if (free.length < items.length) return free
    }
    if (code === null || !ROW_REFUSED.test(code)) throw error
    return await isolate(client, items, outcomes, deps)
  }
}

function workspaceIdsOf(items: readonly PendingItem[]): WorkspaceId[] {
  return [...new Set(items.map((item) => item.event.workspaceId))]
}

/**
 * Another transaction, such as one that an operator left open, holds a head for longer than a batch waits.
 * Finds out which of the suspects is locked, refuses the items of that workspace, so that no other one has
 * to wait, and returns the rest.
 */
async function setLockedAside(
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

/** Other nodes lock heads too, but only for moments. */
const LOOKS_MAX = 3
const LOOK_EVERY_MS = 10

async function findFree(
  client: Client,
  workspaceIds: readonly WorkspaceId[],
): Promise<ReadonlySet<WorkspaceId>> {
  const free = new Set<WorkspaceId>()
  for (let looks = 0; looks < LOOKS_MAX && free.size < workspaceIds.length; looks += 1) {
    if (looks > 0) await delay(LOOK_EVERY_MS)
    const others = workspaceIds.filter((id) => !free.has(id))
    for (const id of await listFreeHeads(client, others)) free.add(id)
  }
  return free
}

/** A unique violation means that a head we relied on was not the head: the lock will tell. */
const RETRIED: ReadonlySet<string> = new Set([
  SQLSTATE.UNIQUE_VIOLATION,
  SQLSTATE.SERIALIZATION_FAILURE,
  SQLSTATE.DEADLOCK_DETECTED,
])
/** Data, integrity and size errors: some row's own fault. */
const ROW_REFUSED = /^(22|23|54)/

/** A row that the database refuses fails its own caller only: halve until it stands alone. */
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

/** Whether the batch before ended as it was expected to. If not, the seals are thrown away. */
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

/** The same under locks, for workspaces that several writers write at once. */
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
    // On a dead connection this fails too, and the first error is the one that counts.
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
