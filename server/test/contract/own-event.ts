import assert from 'node:assert/strict'
import type { Tenant, World } from './world.ts'

/** An event of the tenant's workspace; any number of them may be stored. */
export async function ownEvent({ call }: World, { workspaceKey: key }: Tenant): Promise<string> {
  const body = { category: 'contract', action: 'stored', metadata: { amount: 1 } }
  const { status, json, text } = await call('POST', '/v1/events', { key, body })
  assert.equal(status, 201, text)
  return json.id
}
