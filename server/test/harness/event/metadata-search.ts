import assert from 'node:assert/strict'
import { advanceSearchBlocks } from '../../../src/ledger/search/search-blocks.ts'
import type { WorkspaceId } from '../../../src/platform/id.ts'
import type { Queryable } from '../../../src/platform/pg/database.ts'
import { type Parameters, search } from '../dashboard/explorer.ts'
import type { TestApp, TestResponse } from '../app/start-app.ts'

/** Every event that a query of the API returns, page by page. */
export async function walkEvents(
  app: TestApp,
  key: string,
  parameters: Parameters = {},
): Promise<TestResponse['json'][]> {
  const events: TestResponse['json'][] = []
  let cursor: string | null = null
  do {
    const more = { limit: '200', ...parameters, ...(cursor !== null && { cursor }) }
    const { status, json, text } = await app.call('GET', `/v1/events${search(more)}`, { key })
    assert.equal(status, 200, text)
    events.push(...json.data)
    cursor = json.nextCursor
  } while (cursor !== null)
  return events
}

/** The paths and texts of everything in the metadata of an event, computed in the simplest way. */
export function nodesOf(value: unknown, path = ''): [path: string, text: string | null][] {
  if (typeof value !== 'object' || value === null) return [[path, String(value)]]
  const own: [string, string | null][] = path === '' ? [] : [[path, null]]
  if (Array.isArray(value)) return [...own, ...value.flatMap((item) => nodesOf(item, path))]
  const inner = Object.entries(value).flatMap(([key, member]) => {
    const nodes = nodesOf(member, 'x')
    return nodes.map(([at, text]): [string, string | null] => [
      `${path === '' ? '' : `${path}.`}${key}${at.slice(1)}`,
      text,
    ])
  })
  return [...own, ...inner]
}

/** Puts all events of a chain into blocks of this size, and leaves the last ones as a worker does. */
export async function buildSearchBlocks(
  db: Queryable,
  workspaceId: WorkspaceId,
  blockEvents: number,
): Promise<void> {
  while ((await advanceSearchBlocks(db, workspaceId, { blockEvents })) !== 'done');
}
