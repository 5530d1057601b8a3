import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { newId } from '../../src/platform/id.ts'
import { insertProject } from '../../src/tenancy/workspace/workspace-store.ts'
import { countLockWaits } from '../harness/database/company-lock.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

const EVENTS = 500
/** More than the pool has connections. */
const WORKSPACES = 24
/** Of a company, at once. */
const LOOKUPS_MAX = 2
/** The other company and the node itself use connections at the same time. */
const OWN_USES_MAX = 8
const EVENT = { category: 'c', action: 'a' }

const unknownProjects = (count: number) =>
  Array.from({ length: count }, () => ({ ...EVENT, projectId: newId() }))

const sendBatch = (key: string, events: readonly object[]) =>
  annals.call('POST', '/v1/events/batch', { key, body: { events } })

const sendEvent = (key: string, event: object) =>
  annals.call('POST', '/v1/events', { key, body: event })

/** How often a connection of the pool was taken during `work`, and how many were in use at once. */
async function watchPool(work: () => Promise<void>): Promise<{ uses: number; atOnce: number }> {
  const { pool } = annals.app.database
  let uses = 0
  let atOnce = 0
  const count = () => {
    uses += 1
    atOnce = Math.max(atOnce, pool.totalCount - pool.idleCount)
  }
  pool.on('acquire', count)
  await work()
  pool.off('acquire', count)
  return { uses, atOnce }
}

test('a batch looks up all of its unknown projects in one query', async () => {
  const { workspaceKey: key, project } = await annals.createCompany()
  const { uses } = await watchPool(async () => {
    const events = [...unknownProjects(EVENTS - 1), { ...EVENT, projectId: project.id }]
    const { json } = await sendBatch(key, events)
    const statuses: number[] = json.results.map(({ status }: { status: number }) => status)
    assert.equal(statuses.indexOf(201), EVENTS - 1)
    assert.equal(statuses.lastIndexOf(400), EVENTS - 2)
  })
  // The node itself uses some for as long as this takes.
  assert(uses >= 1 && uses < EVENTS / 5, `${uses} uses of a connection`)
})

test('events with unknown projects leave connections for every other company', async () => {
  const names = Array.from({ length: WORKSPACES - 1 }, (_, nth) => `Workspace ${nth}`)
  const attacker = await annals.createCompany({ workspaces: ['First', ...names] })
  const { workspaceKey: key } = await annals.createCompany()
  const flood = () =>
    attacker.workspaces.flatMap(({ workspaceKey }) => [
      sendBatch(workspaceKey, unknownProjects(EVENTS)),
      sendEvent(workspaceKey, { ...EVENT, projectId: newId() }),
    ])
  let responses: Promise<TestResponse>[] = []
  const { atOnce } = await watchPool(() =>
    withProjectsLocked(async () => {
      responses = flood()
      await eventually(async () => assert((await countLockWaits(annals)) >= LOOKUPS_MAX))
      // More than one try, because a busy machine can take longer than a read may.
      await eventually(async () => {
        const served = await Promise.all([
          annals.call('GET', '/v1/events', { key }),
          sendEvent(key, EVENT),
          annals.call('GET', '/ready'),
        ])
        assert.deepEqual(
          served.map(({ status }) => status),
          [200, 201, 200],
        )
      })
    }),
  )
  assert(atOnce <= LOOKUPS_MAX + OWN_USES_MAX, `${atOnce} connections at once`)
  for (const { status, json, text } of await Promise.all(responses)) {
    const isRefused = json.code === 'unknown_project' || status === 503
    assert(isRefused || json.results.length === EVENTS, text)
  }
})

/** Lookups wait for the lock, so that as many as are allowed run at the same time. */
async function withProjectsLocked(work: () => Promise<void>): Promise<void> {
  await asOwner(annals, (owner) =>
    owner.transaction().execute(async (trx) => {
      await sql`lock table project in access exclusive mode`.execute(trx)
      await work()
    }),
  )
}

test('stores hundreds of concurrent events that name the same new project', async () => {
  const { company, workspace, workspaceKey: key } = await annals.createCompany()
  const projectId = newId<'project'>()
  const event = { ...EVENT, projectId }
  assert.equal((await sendEvent(key, event)).json.code, 'unknown_project')
  const owner = { companyId: company.id, workspaceId: workspace.id }
  await annals.app.database.db
    .transaction()
    .execute((trx) => insertProject(trx, { id: projectId, ...owner, name: 'New' }))
  const responses = await Promise.all(Array.from({ length: 400 }, () => sendEvent(key, event)))
  for (const { status, text } of responses) assert.equal(status, 201, text)
})
