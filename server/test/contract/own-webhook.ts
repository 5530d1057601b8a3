import assert from 'node:assert/strict'
import type { TestResponse } from '../harness/app/start-app.ts'
import type { Tenant, World } from './world.ts'

/** The number of webhooks per workspace is limited, so cases that only read share one per tenant. */
const webhooks = new Map<Tenant, Promise<string>>()
const deliveries = new Map<Tenant, Promise<string>>()

export function ownWebhook(world: World, tenant: Tenant): Promise<string> {
  const made = webhooks.get(tenant) ?? makeWebhook(world, tenant)
  webhooks.set(tenant, made)
  return made
}

/** A test delivery of the tenant's webhook. */
export function ownDelivery(world: World, tenant: Tenant): Promise<string> {
  const made = deliveries.get(tenant) ?? createDelivery(world, tenant)
  deliveries.set(tenant, made)
  return made
}

/** Calls `use` with a new webhook of the owner, then deletes it. */
export async function withWebhook(
  world: World,
  use: (path: string, key: string) => Promise<TestResponse>,
): Promise<TestResponse> {
  const { owner } = world.tenants
  const path = `/v1/webhooks/${await makeWebhook(world, owner)}`
  try {
    return await use(path, owner.companyKey)
  } finally {
    await world.call('DELETE', path, { key: owner.companyKey })
  }
}

/** Calls `use` with a disabled webhook. */
export async function withDisabledWebhook(
  world: World,
  use: (path: string, key: string) => Promise<TestResponse>,
): Promise<TestResponse> {
  return await withWebhook(world, async (path, key) => {
    await world.call('POST', `${path}/disable`, { key })
    return await use(path, key)
  })
}

async function makeWebhook({ call, receiverUrl }: World, tenant: Tenant): Promise<string> {
  const path = `/v1/workspaces/${tenant.workspace.id}/webhooks`
  const body = { url: receiverUrl }
  const { status, json, text } = await call('POST', path, { key: tenant.companyKey, body })
  assert.equal(status, 201, text)
  return json.id
}

async function createDelivery(world: World, tenant: Tenant): Promise<string> {
  const path = `/v1/webhooks/${await ownWebhook(world, tenant)}/test`
  const { status, json, text } = await world.call('POST', path, { key: tenant.companyKey })
  assert.equal(status, 202, text)
  return json.deliveryId
}
