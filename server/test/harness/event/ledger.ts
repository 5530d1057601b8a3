import assert from 'node:assert/strict'
import { verifyChain } from '../../../src/outlet/verify/verify-ledger.ts'
import { listAllWorkspaces } from '../../../src/tenancy/workspace/workspace-store.ts'
import { query } from '../database/engine.ts'
import type { TestResponse, TestApp } from '../app/start-app.ts'

type EventRecord = TestResponse['json']

/** Every event that a query returns, page by page, as a client would read them. */
export async function walkEvents(
  annals: TestApp,
  key: string,
  parameters: Record<string, string> = {},
): Promise<EventRecord[]> {
  const events: EventRecord[] = []
  let cursor: string | null = null
  do {
    const { status, json, text } = await listPage(annals, key, {
      limit: '200',
      ...parameters,
      ...(cursor !== null && { cursor }),
    })
    assert.equal(status, 200, text)
    events.push(...json.data)
    cursor = json.nextCursor
  } while (cursor !== null)
  return events
}

export async function listPage(
  annals: TestApp,
  key: string,
  parameters: Record<string, string> = {},
): Promise<TestResponse> {
  const search = new URLSearchParams(parameters).toString()
  return await annals.call('GET', `/v1/events?${search}`, { key })
}

export function idsOf(events: readonly EventRecord[]): string[] {
  return events.map(({ id }) => String(id))
}

/** Verifies every chain of the database, and returns the total number of events. */
export async function assertChainsHold({ app }: TestApp): Promise<number> {
  let events = 0
  for (const { id: workspaceId } of await listAllWorkspaces(app.database.db)) {
    const verdict = await verifyChain(app.database, app.archive, workspaceId)
    assert(verdict.ok, JSON.stringify(verdict))
    events += verdict.events
  }
  return events
}

export async function countStored(annals: TestApp): Promise<number> {
  const [row] = await query(annals.database.connection, 'select count(*)::int as n from event')
  return Number(row?.['n'])
}
