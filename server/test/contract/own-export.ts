import assert from 'node:assert/strict'
import type { TestResponse } from '../harness/app/start-app.ts'
import type { OperationCases } from './driver.ts'
import { keyedCases, type Request } from './keyed-cases.ts'
import type { Tenant, World } from './world.ts'

export const EXPORT_BODY = { source: 'HOT', format: 'JSONL' }

/** An export job of the tenant's company. Each call creates a new one. */
export async function ownExport({ call }: World, { companyKey: key }: Tenant): Promise<string> {
  const { status, json, text } = await call('POST', '/v1/exports', { key, body: EXPORT_BODY })
  assert.equal(status, 201, text)
  return json.jobId
}

/** Calls `use` with a new job of the owner. */
export async function withExport(
  world: World,
  use: (path: string, key: string) => Promise<TestResponse>,
): Promise<TestResponse> {
  const { owner } = world.tenants
  return await use(`/v1/exports/${await ownExport(world, owner)}`, owner.companyKey)
}

/** Calls `use` with a job that has been downloaded. */
export async function withFinishedExport(
  world: World,
  use: (path: string, key: string) => Promise<TestResponse>,
): Promise<TestResponse> {
  return await withExport(world, async (path, key) => {
    await world.call('GET', `${path}/download`, { key })
    return await use(path, key)
  })
}

/** Cases for every operation with a job id in its path. */
export function jobCases(request: Request): OperationCases['cases'] {
  const { method, path } = request
  return [
    ...keyedCases(request),
    {
      status: 400,
      code: 'invalid_request',
      when: 'a parameter is unknown',
      send: ({ call, tenants: { owner } }) =>
        call(method, `${path}?unknown=1`, { key: owner.companyKey }),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'the id is malformed',
      send: ({ call, tenants: { owner } }) => call(method, path, { key: owner.companyKey }),
    },
    {
      status: 404,
      code: 'not_found',
      when: 'a workspace key requests a job of its company',
      send: (world) =>
        withExport(world, (own) =>
          world.call(method, path.replace('/v1/exports/any', own), {
            key: world.tenants.owner.workspaceKey,
          }),
        ),
    },
  ]
}
