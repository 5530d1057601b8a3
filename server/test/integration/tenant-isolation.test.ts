import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { query } from '../harness/database/engine.ts'
import { idsOf, listPage, walkEvents } from '../harness/event/ledger.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())

const a = await annals.createCompany({ company: 'A', workspaces: ['One', 'Two'] })
const b = await annals.createCompany({ company: 'B', workspaces: ['One', 'Two'] })
const [first, second] = a.workspaces

const EVENT = {
  category: 'shared',
  action: 'shared',
  actor: { id: 'shared', email: 'shared@example.com' },
  resource: { type: 'shared', id: 'shared' },
}
for (const { workspaces, project } of [a, b]) {
  for (const [index, { workspaceKey: key }] of workspaces.entries()) {
    const projectId = index === 0 ? { projectId: project.id } : {}
    const body = { ...EVENT, ...projectId, idempotencyKey: 'shared' }
    assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 201)
  }
}

/** Everything but the trace id, which differs in every response. */
const comparable = ({ status, text, headers, json }: TestResponse) => ({
  status,
  body: text.replaceAll(json.traceId, 'trace'),
  headers: [...headers].filter(([name]) => name !== 'x-trace-id' && name !== 'date'),
})

test('no filter returns another tenant’s events', async () => {
  const filters: Record<string, string>[] = [
    {},
    { category: 'shared' },
    { action: 'shared' },
    { actorId: 'shared' },
    { actorEmail: 'shared@example.com' },
    { resourceType: 'shared' },
    { resourceId: 'shared' },
    { from: '2000-01-01T00:00:00Z' },
    { to: '2100-01-01T00:00:00Z' },
  ]
  for (const filter of filters) {
    for (const { company, companyKey, workspaces } of [a, b]) {
      const all = await walkEvents(annals, companyKey, filter)
      const workspaceIds = all.map(({ workspaceId }) => String(workspaceId)).toSorted()
      assert.deepEqual(workspaceIds, idsOf(workspaces).toSorted())
      assert(all.every(({ companyId }) => companyId === company.id))
      for (const { id, workspaceKey } of workspaces) {
        const own = await walkEvents(annals, workspaceKey, filter)
        assert.deepEqual(
          own.map(({ workspaceId }) => workspaceId),
          [id],
        )
      }
    }
  }
})

test('a project of another tenant, or one that does not exist, gives an empty result', async () => {
  for (const projectId of [b.project.id, newId()]) {
    for (const key of [a.companyKey, a.workspaceKey]) {
      const { status, json } = await listPage(annals, key, { projectId })
      assert.deepEqual([status, json], [200, { data: [], nextCursor: null }])
    }
  }
  const sibling = await listPage(annals, second?.workspaceKey ?? '', { projectId: a.project.id })
  assert.deepEqual(sibling.json.data, [])
  const own = await listPage(annals, a.companyKey, { projectId: a.project.id.toUpperCase() })
  assert.equal(own.json.data.length, 1)
})

test('workspace keys cannot use the workspaceId filter, whatever it names', async () => {
  for (const workspaceId of [first?.id, second?.id, b.workspace.id, newId()]) {
    const { status, json } = await listPage(annals, first?.workspaceKey ?? '', {
      workspaceId: workspaceId ?? '',
    })
    assert.deepEqual([status, json.code], [403, 'insufficient_scope'])
  }
})

test('a workspace of another tenant gets the same response as one that does not exist', async () => {
  const foreign = await listPage(annals, a.companyKey, { workspaceId: b.workspace.id })
  const unknown = await listPage(annals, a.companyKey, { workspaceId: newId() })
  assert.equal(foreign.status, 404)
  assert.equal(foreign.json.code, 'not_found')
  assert.deepEqual(comparable(foreign), comparable(unknown))
  const [system] = await query(
    annals.database.connection,
    `select id from workspace where company_id = '${b.company.id}' and kind = 'SYSTEM'`,
  )
  const foreignSystem = await listPage(annals, a.companyKey, {
    workspaceId: String(system?.['id']),
  })
  assert.deepEqual(comparable(foreignSystem), comparable(unknown))
})

test('a company key can name any of its own workspaces', async () => {
  for (const { id } of a.workspaces) {
    for (const workspaceId of [id, id.toUpperCase()]) {
      const { status, json } = await listPage(annals, a.companyKey, { workspaceId })
      assert.equal(status, 200)
      assert.deepEqual(
        json.data.map((event: TestResponse['json']) => event.workspaceId),
        [id],
      )
    }
  }
})

test('the system workspace is included only if it is named', async () => {
  const { connection } = annals.database
  const [system] = await query(
    connection,
    `select id from workspace where company_id = '${a.company.id}' and kind = 'SYSTEM'`,
  )
  const systemId = String(system?.['id'])
  // The service doesn't write to it yet, so the test moves an event there.
  await query(
    connection,
    `insert into event select (e).* from (
       select jsonb_populate_record(e, jsonb_build_object('workspace_id', '${systemId}',
                'id', '${newId()}')) as e
         from event e where workspace_id = '${a.workspace.id}') as copies`,
  )
  const unnamed = await walkEvents(annals, a.companyKey)
  assert(unnamed.every(({ workspaceId }) => workspaceId !== systemId))
  const named = await walkEvents(annals, a.companyKey, { workspaceId: systemId })
  assert.equal(named.length, 1)
})
