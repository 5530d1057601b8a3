import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { forgetRun } from '../../../src/ledger/rollup/rollup.ts'
import type { WorkspaceId } from '../../../src/platform/id.ts'
import { createLogger } from '../../../src/platform/logger.ts'
import { Database } from '../../../src/platform/pg/database.ts'
import type { Member } from './dashboard.ts'
import { TIMEOUT_FACTOR } from '../timing/timeout-factor.ts'
import type { TestResponse, TestApp } from '../app/start-app.ts'

/** A list is sent as a repeated parameter. */
export type Parameters = Record<string, string | readonly string[]>

/** Every event that the explorer shows, page by page. */
export async function walkExplorer(
  member: Member,
  parameters: Parameters = {},
): Promise<TestResponse['json'][]> {
  const events: TestResponse['json'][] = []
  let cursor: string | null = null
  do {
    const { status, json, text } = await explore(member, {
      limit: '25',
      ...parameters,
      ...(cursor !== null && { cursor }),
    })
    assert.equal(status, 200, text)
    events.push(...json.data)
    cursor = json.nextCursor
  } while (cursor !== null)
  return events
}

export function explore(member: Member, parameters: Parameters = {}): Promise<TestResponse> {
  return member.call('GET', `/dashboard/events${search(parameters)}`)
}

export function readHistogram(member: Member, parameters: Parameters = {}): Promise<TestResponse> {
  return member.call('GET', `/dashboard/events/metrics/histogram${search(parameters)}`)
}

export function readOptions(member: Member, parameters: Parameters): Promise<TestResponse> {
  return member.call('GET', `/dashboard/events/filter-options${search(parameters)}`)
}

export function search(parameters: Parameters): string {
  const pairs = Object.entries(parameters).flatMap(([name, values]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  )
  const text = new URLSearchParams(pairs).toString()
  return text === '' ? '' : `?${text}`
}

/** Sends events with the key of a workspace. */
export async function sendEvents(
  app: TestApp,
  key: string,
  events: readonly object[],
): Promise<string[]> {
  if (events.length === 0) return []
  const { status, json, text } = await app.call('POST', '/v1/events/batch', {
    key,
    body: { events },
  })
  assert.equal(status, 200, text)
  for (const result of json.results) assert.equal(result.status, 201, JSON.stringify(result))
  return json.results.map(({ id }: { id: string }) => id)
}

/** Removes the oldest events like the archiver, so that removed events are not counted. */
export async function removeUpTo(
  app: TestApp,
  workspaceId: WorkspaceId,
  toSeq: number,
): Promise<void> {
  const { connection } = app.database
  const logger = createLogger('silent')
  await using keeper = new Database({
    connection,
    role: 'annals_keeper',
    connectionsMax: 1,
    logger,
    timeoutFactor: TIMEOUT_FACTOR,
  })
  await keeper.db.transaction().execute(async (trx) => {
    await forgetRun(trx, { workspaceId, toSeq })
    await sql`delete from event where workspace_id = ${workspaceId} and seq <= ${toSeq}`.execute(
      trx,
    )
  })
}
