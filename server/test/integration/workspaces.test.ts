import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_WEBHOOK_DESTINATIONS: 'any' } })
after(() => annals[Symbol.asyncDispose]())

const a = await annals.createCompany({ company: 'A', workspaces: ['Staging', 'Production'] })
const b = await annals.createCompany({ company: 'B', workspaces: ['Staging', 'Production'] })
const [staging, production] = a.workspaces
assert(staging && production)

const get = (key: string, path: string) => annals.call('GET', path, { key })

async function listWorkspaces(key: string): Promise<TestResponse['json'][]> {
  const { status, json, text } = await get(key, '/v1/workspaces')
  assert.equal(status, 200, text)
  return json.workspaces
}

/** Everything but the trace id, which is every response's own, and the state of the rate limit. */
const comparable = ({ status, text, headers, json }: TestResponse) => ({
  status,
  body: text.replaceAll(json.traceId, 'trace'),
  headers: [...headers].filter(([name]) => !/^(x-trace-id|date|ratelimit-.*)$/.test(name)),
})

test('a company key lists all workspaces by name, and the system workspace last', async () => {
  const workspaces = await listWorkspaces(a.companyKey)
  assert.deepEqual(
    workspaces.map(({ name, system }) => [name, system]),
    [
      ['Production', false],
      ['Staging', false],
      ['Dashboard activity', true],
    ],
  )
  for (const workspace of workspaces) {
    assert.deepEqual(Object.keys(workspace), ['id', 'name', 'system', 'createdAt'])
    assert.equal(new Date(workspace.createdAt).toISOString(), workspace.createdAt)
  }
})

test('a workspace key lists only its own workspace', async () => {
  for (const { id, name, workspaceKey } of a.workspaces) {
    const workspaces = await listWorkspaces(workspaceKey)
    assert.deepEqual(
      workspaces.map((workspace) => [workspace.id, workspace.name, workspace.system]),
      [[id, name, false]],
    )
  }
})

test('a key can get each workspace that it lists, and its projects', async () => {
  for (const key of [a.companyKey, staging.workspaceKey, production.workspaceKey]) {
    for (const workspace of await listWorkspaces(key)) {
      for (const id of [workspace.id, workspace.id.toUpperCase()]) {
        const one = await get(key, `/v1/workspaces/${id}`)
        assert.deepEqual([one.status, one.json], [200, workspace])
        const { status, json } = await get(key, `/v1/workspaces/${id}/projects`)
        const projects = json.projects.map((project: TestResponse['json']) => [
          project.id,
          project.name,
        ])
        const expected = workspace.id === a.workspace.id ? [[a.project.id, 'Billing']] : []
        assert.deepEqual([status, projects], [200, expected])
      }
    }
  }
})

test('workspaces that a key cannot see get the same 404 as unknown ones', async () => {
  const system = (await listWorkspaces(a.companyKey)).find((workspace) => workspace.system)
  const foreignSystem = (await listWorkspaces(b.companyKey)).find((workspace) => workspace.system)
  const hidden: [key: string, ids: string[]][] = [
    [a.companyKey, [b.workspace.id, foreignSystem.id, 'no-id']],
    [staging.workspaceKey, [production.id, system.id, b.workspace.id, 'no-id']],
  ]
  for (const end of ['', '/projects', '/event-types']) {
    for (const [key, ids] of hidden) {
      const unknown = comparable(await get(key, `/v1/workspaces/${newId()}${end}`))
      assert.equal(unknown.status, 404)
      for (const id of ids) {
        assert.deepEqual(comparable(await get(key, `/v1/workspaces/${id}${end}`)), unknown, id)
      }
    }
  }
})

test('reads of workspaces, projects, one event and one webhook accept no parameters', async () => {
  const paths = ['', `/${staging.id}`, `/${staging.id}/projects`].map(
    (end) => `/v1/workspaces${end}`,
  )
  for (const path of [...paths, `/v1/events/${newId()}`, `/v1/webhooks/${newId()}`]) {
    for (const search of ['limit=1', 'workspaceId=1&workspaceId=1']) {
      const { status, json } = await get(a.companyKey, `${path}?${search}`)
      assert.deepEqual([status, json.code], [400, 'invalid_request'], path)
    }
  }
})

test('a webhook is returned as the list shows it, without its secret, to company keys only', async () => {
  const path = `/v1/workspaces/${staging.id}/webhooks`
  const body = { url: 'http://127.0.0.1:9/hook', secretLabel: 'label' }
  const created = await annals.call('POST', path, { key: a.companyKey, body })
  assert.equal(created.status, 201, created.text)
  const { json: list } = await get(a.companyKey, path)
  const own = `/v1/webhooks/${created.json.id}`
  const { status, json, text } = await get(a.companyKey, own)
  assert.deepEqual([status, json], [200, list.webhooks[0]])
  assert(!text.includes(created.json.secret))
  assert.equal((await get(staging.workspaceKey, own)).json.code, 'insufficient_scope')
  const unknown = comparable(await get(b.companyKey, `/v1/webhooks/${newId()}`))
  assert.equal(unknown.status, 404)
  for (const id of [created.json.id, 'no-id']) {
    assert.deepEqual(comparable(await get(b.companyKey, `/v1/webhooks/${id}`)), unknown)
  }
})
