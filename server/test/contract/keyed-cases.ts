import type { TestResponse } from '../harness/app/start-app.ts'
import type { Case } from './driver.ts'
import type { Tenant, World } from './world.ts'

/** A valid request of an operation, and the key that sends it. */
export type Request = { method: string; path: string; body?: unknown }

const ROUND_CALLS = 20
const ROUNDS_MAX = 250

/** Cases for every operation that requires a key. */
export function keyedCases(
  request: Request,
  keyOf: (tenant: Tenant) => string = ({ workspaceKey }) => workspaceKey,
): Case[] {
  const { method, path, body } = request
  return [
    {
      status: 401,
      code: 'missing_api_key',
      when: 'no key is sent',
      send: ({ call }) => call(method, path, { body }),
    },
    {
      status: 401,
      code: 'invalid_api_key',
      when: 'the key is unknown',
      send: ({ call, tenants }) => call(method, path, { body, key: `${keyOf(tenants.owner)}0` }),
    },
    {
      status: 403,
      code: 'ip_not_allowed',
      when: 'the allowlist applies to all calls and does not include the caller',
      send: ({ call, tenants: { fenced } }) =>
        fenced ? call(method, path, { body, key: keyOf(fenced) }) : null,
    },
    {
      status: 429,
      code: 'rate_limited',
      when: 'the key exceeds its rate limit',
      send: (world) => floodUntilLimited(world, request, keyOf(world.tenants.free)),
    },
    {
      status: 503,
      code: 'unavailable',
      when: 'the database is unreachable',
      send: ({ callBroken, tenants }) =>
        callBroken && callBroken(method, path, { body, key: keyOf(tenants.owner) }),
    },
  ]
}

/**
 * The first 429, or the last response if there was none. A call that costs little uses up the rate limit of the
 * key, because all operations share it.
 */
async function floodUntilLimited(
  { call }: World,
  { method, path, body }: Request,
  key: string,
): Promise<TestResponse> {
  for (let round = 1; ; round++) {
    const response = await call(method, path, { key, body })
    if (response.status === 429 || round >= ROUNDS_MAX) return response
    await Promise.all(
      Array.from({ length: ROUND_CALLS }, () => call('GET', '/v1/keys/status', { key })),
    )
  }
}

/** Cases for every operation that reads a body. */
export function bodyCases(
  { method, path }: Request,
  keyOf: (tenant: Tenant) => string = ({ workspaceKey }) => workspaceKey,
): Case[] {
  const send = (type: string, text: string) => (world: World) =>
    world.call(method, path, {
      key: keyOf(world.tenants.owner),
      text,
      headers: { 'content-type': type },
    })
  const JSON_TYPE = 'application/json'
  return [
    {
      status: 400,
      code: 'invalid_json',
      when: 'the JSON is truncated',
      send: send(JSON_TYPE, '{'),
    },
    {
      status: 400,
      code: 'invalid_request',
      when: 'a field is unknown',
      send: send(JSON_TYPE, '{"unknown":1}'),
    },
    {
      status: 413,
      code: 'payload_too_large',
      when: 'the body is too large',
      send: send(JSON_TYPE, `"${'x'.repeat(5 * 1_024 * 1_024)}"`),
    },
    {
      status: 415,
      code: 'unsupported_media_type',
      when: 'the body is not declared as JSON',
      send: send('text/plain', '{}'),
    },
  ]
}
