import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { advanceEventTypes } from '../../../src/ledger/event-type/event-types.ts'
import type { WorkspaceId } from '../../../src/platform/id.ts'
import type { Queryable } from '../../../src/platform/pg/database.ts'
import type { TestApp, TestResponse } from '../app/start-app.ts'

/** Learns from all events that are stored. */
export async function learnAllEventTypes(
  db: Queryable,
  workspaceId: WorkspaceId,
  options?: { eventsMax: number },
): Promise<void> {
  while ((await advanceEventTypes(db, workspaceId, options)).outcome !== 'done');
}

/** Every type of a workspace, page by page, and the rest of the response. */
export async function readTypes(
  app: TestApp,
  { key, workspaceId }: { key: string; workspaceId: WorkspaceId },
  search: Record<string, string> = {},
): Promise<TestResponse['json']> {
  const data: TestResponse['json'][] = []
  let cursor: string | null = null
  for (;;) {
    const parameters = new URLSearchParams({ ...search, ...(cursor !== null && { cursor }) })
    const path = `/v1/workspaces/${workspaceId}/event-types?${parameters.toString()}`
    const { status, json, text } = await app.call('GET', path, { key })
    assert.equal(status, 200, text)
    data.push(...json.data)
    cursor = json.nextCursor
    if (cursor === null) return { ...json, data }
  }
}

type StoredEvent = {
  id: string
  receivedAt: Date
  category: string
  action: string
  metadata: string | null
}
type Counted = { count: number; firstSeenAt: string; lastSeenAt: string }
type CountedType = Counted & {
  category: string
  action: string
  keys: Record<string, Counted & { types: string[] }>
}

export async function readStored(db: Queryable, workspaceId: WorkspaceId): Promise<StoredEvent[]> {
  const { rows } = await sql<StoredEvent>`
    select id, received_at as "receivedAt", category, action, metadata from event
     where workspace_id = ${workspaceId} order by seq`.execute(db)
  return rows
}

/** What the types should say about these events, computed in the simplest way. */
export function countTypes(events: readonly StoredEvent[]): CountedType[] {
  const types: CountedType[] = []
  for (const { category, action, metadata, receivedAt } of events) {
    const at = receivedAt.toISOString()
    let type = types.find((known) => known.category === category && known.action === action)
    if (!type) {
      type = { category, action, count: 0, firstSeenAt: at, lastSeenAt: at, keys: {} }
      types.push(type)
    }
    type.count += 1
    // That of the last event in the chain, which is not always the one that was received last.
    type.lastSeenAt = at
    for (const [path, value] of pathsOf(metadata === null ? {} : JSON.parse(metadata))) {
      type.keys[path] ??= { types: [], count: 0, firstSeenAt: at, lastSeenAt: at }
      const key = type.keys[path]
      key.count += 1
      if (at > key.lastSeenAt) key.lastSeenAt = at
      if (!key.types.includes(typeOf(value))) key.types.push(typeOf(value))
    }
  }
  return types.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
}

/** The event types in a response. */
export function listedTypes(data: readonly TestResponse['json'][]): CountedType[] {
  return data.map(({ category, action, metadataKeys, ...type }) => ({
    category,
    action,
    count: type.count,
    firstSeenAt: type.firstSeenAt,
    lastSeenAt: type.lastSeenAt,
    keys: Object.fromEntries(
      metadataKeys.map(({ path, ...key }: TestResponse['json']) => [path.join('.'), key]),
    ),
  }))
}

function pathsOf(metadata: Record<string, unknown>): [path: string, value: unknown][] {
  return Object.entries(metadata).flatMap(([outer, value]) => [
    [outer, value],
    ...(isObject(value)
      ? Object.entries(value).map(([inner, nested]): [string, unknown] => [
          `${outer}.${inner}`,
          nested,
        ])
      : []),
  ])
}

const isObject = (value: unknown): value is object => typeOf(value) === 'object'
const nameOf = ({ category, action }: CountedType): string => `${category}\0${action}`

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}
