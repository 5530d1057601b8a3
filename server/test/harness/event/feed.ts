import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import type { TestApp, TestResponse } from '../app/start-app.ts'

type FeedParameters = { after?: number; limit?: number; waitSeconds?: number }

export function feedPath(workspaceId: string, parameters: FeedParameters = {}): string {
  const search = Object.entries(parameters).map(([name, value]) => `${name}=${value}`)
  return `/v1/workspaces/${workspaceId}/feed?${search.join('&')}`
}

export async function readFeed(
  annals: Pick<TestApp, 'call'>,
  { key, workspaceId }: { key: string; workspaceId: string },
  parameters: FeedParameters = {},
): Promise<TestResponse> {
  return await annals.call('GET', feedPath(workspaceId, parameters), { key })
}

/** Follows the feed from `after` up to `toSeq`, page by page. Checks that no event is skipped or repeated. */
export async function followFeed(
  annals: Pick<TestApp, 'call'>,
  reader: { key: string; workspaceId: string },
  { after = 0, toSeq, ...parameters }: FeedParameters & { toSeq: number },
): Promise<TestResponse['json'][]> {
  const events: TestResponse['json'][] = []
  let next = after
  while (next < toSeq) {
    const { status, json, text } = await readFeed(annals, reader, { after: next, ...parameters })
    assert.equal(status, 200, text)
    for (const event of json.data) {
      assert.equal(event.seq, next + 1)
      next = event.seq
      events.push(event)
    }
    assert.equal(json.next, next)
  }
  return events
}

/** A request that a test can abandon. Its connection isn't shared. */
export function openFeed({ url }: Pick<TestApp, 'url'>, path: string, key: string) {
  const outgoing = request(`${url}${path}`, {
    headers: { authorization: `Bearer ${key}` },
    agent: false,
  })
  outgoing.on('error', () => {})
  outgoing.end()
  return {
    response: once(outgoing, 'response').catch(() => null),
    hangUp: () => outgoing.destroy(),
  }
}
