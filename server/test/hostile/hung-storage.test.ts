import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { EXPORT_TIMEOUTS } from '../../src/outlet/export/export-timeouts.ts'
import { archiveNow, WHOLE } from '../harness/archive/archived-bulk.ts'
import { openBucket } from '../harness/archive/bucket.ts'
import { s3Environment } from '../harness/archive/s3-server.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'
import { type Member, signInAs } from '../harness/dashboard/dashboard.ts'
import { makeExport, storeEvents } from '../harness/export/exports.ts'
import { signEvents } from '../harness/proof/proof.ts'
import { eventually, TurnClock, within } from '../harness/timing/eventually.ts'

await using stack = new AsyncDisposableStack()
const s3 = await openBucket(stack)
const annals = stack.use(
  await startTestApp({
    env: { ...s3.env, ANNALS_RATE_LIMITS: 'off' },
    exportTimeouts: { ...EXPORT_TIMEOUTS, checkMs: 2_000 },
    timeoutFactor: 1,
  }),
)
const kept = stack.move()
after(() => kept.disposeAsync())

const COMPANIES = 3
const CONNECTIONS = 6
/** At least 20 ms apart. */
const QUERIES = 25
const DAY_MS = 86_400_000
const EVENT = { category: 'c', action: 'a' }

type Attacker = {
  key: string
  workspaceId: string
  member: Member
  /** A job with archived events. */
  jobId: string
  templateId: string
  /** An export of events from this time on starts in the middle of an archived file. */
  from: string
}

const { workspaceKey: otherKey } = await annals.createCompany()
await storeEvents(annals, otherKey, [EVENT])

/** Companies with an empty workspace. */
async function createEmpty(): Promise<Attacker[]> {
  return await Promise.all(
    Array.from({ length: COMPANIES }, async () => {
      const company = await annals.createCompany({ plan: 'FREE' })
      const { workspace, workspaceKey: key } = company
      const member = await signInAs(annals, company, 'OWNER')
      const none = { jobId: '', templateId: '', from: '' }
      return { key, workspaceId: workspace.id, member, ...none }
    }),
  )
}

/** Companies with two archived events that were received at different times, in one file. */
async function createArchived(): Promise<Attacker[]> {
  const companies = await Promise.all(
    Array.from({ length: COMPANIES }, () => annals.createCompany({ plan: 'STARTER' })),
  )
  for (const { workspaceKey, workspace } of companies) {
    await storeEvents(annals, workspaceKey, [EVENT])
    const storedAtMs = Date.now()
    await eventually(() => assert(Date.now() > storedAtMs + 2))
    await storeEvents(annals, workspaceKey, [EVENT])
    await signEvents(annals, workspace.id)
  }
  const times = await Promise.all(companies.map(({ workspaceKey }) => middleOf(workspaceKey)))
  const { code, stderr } = await archiveNow(annals, s3Environment(s3))
  assert.equal(code, 0, stderr)
  return await Promise.all(
    companies.map(async (company, nth) => {
      const { workspace, workspaceKey: key } = company
      const member = await signInAs(annals, company, 'OWNER')
      const jobId = await makeExport(annals, key, WHOLE)
      const body = { name: 'Whole', body: WHOLE }
      const { json, text } = await member.call('POST', '/dashboard/export-templates', { body })
      assert(json.id, text)
      const from = times[nth] ?? ''
      return { key, workspaceId: workspace.id, member, jobId, templateId: json.id, from }
    }),
  )
}

/** Between the receipts of the two events, and 24 hours later, because timestamps can be that far ahead. */
async function middleOf(key: string): Promise<string> {
  const { json } = await annals.call('GET', '/v1/events', { key })
  const [last, first] = json.data.map(({ receivedAt }: { receivedAt: string }) =>
    Date.parse(receivedAt),
  )
  assert(last > first + 1)
  return new Date(first + 1 + DAY_MS).toISOString()
}

type Send = (attacker: Attacker) => Promise<TestResponse>

const get =
  (pathOf: (workspaceId: string) => string): Send =>
  ({ key, workspaceId }) =>
    annals.call('GET', pathOf(workspaceId), { key })

const ON_EMPTY: Record<string, Send> = {
  checkpoint: get((id) => `/v1/workspaces/${id}/checkpoint`),
  'checkpoint of the log': get((id) => `/v1/workspaces/${id}/tlog/checkpoint`),
  tile: get((id) => `/v1/workspaces/${id}/tlog/tile/0/000`),
  consistency: get((id) => `/v1/workspaces/${id}/consistency?from=0`),
  'checkpoints of the dashboard': ({ member, workspaceId }) =>
    member.call('GET', `/dashboard/integrity/checkpoints?workspaceId=${workspaceId}`),
}

const ON_ARCHIVED: Record<string, Send> = {
  export: ({ key }) => annals.call('POST', '/v1/exports', { key, body: WHOLE }),
  'complete export': ({ key, from }) => {
    const filters = { ...WHOLE.filters, from }
    const body = { ...WHOLE, filters, evidence: 'COMPLETE' }
    return annals.call('POST', '/v1/exports/preflight', { key, body })
  },
  preflight: ({ key }) => annals.call('POST', '/v1/exports/preflight', { key, body: WHOLE }),
  rerun: ({ key, jobId }) => annals.call('POST', `/v1/exports/${jobId}/rerun`, { key }),
  'export of the dashboard': ({ member }) =>
    member.call('POST', '/dashboard/exports', { body: WHOLE }),
  'preflight of the dashboard': ({ member }) =>
    member.call('POST', '/dashboard/exports/preflight', { body: WHOLE }),
  'rerun of the dashboard': ({ member, jobId }) =>
    member.call('POST', `/dashboard/exports/${jobId}/rerun`),
  template: ({ member, templateId }) =>
    member.call('POST', `/dashboard/export-templates/${templateId}/run`),
}

/** Sends the requests to storage that hangs, and meanwhile the queries of another company. */
async function assertOthersAreFast(
  attackers: readonly Attacker[],
  route: string,
  send: Send,
): Promise<TestResponse[]> {
  s3.mode = 'hang'
  try {
    const requests = attackers.flatMap((attacker) =>
      Array.from({ length: CONNECTIONS }, () => send(attacker)),
    )
    let answered = 0
    const responses = Promise.all(
      requests.map(async (request) => {
        const response = await request
        answered += 1
        return response
      }),
    )
    const queriesMs: number[] = []
    await eventually(async () => {
      using clock = new TurnClock()
      const { status } = await annals.call('GET', '/v1/events', { key: otherKey })
      assert.equal(status, 200, route)
      queriesMs.push(clock.ms)
      // On a busy machine, the first requests time out before that.
      assert(queriesMs.length >= QUERIES || answered > 0)
    })
    assert(Math.max(...queriesMs) < 1_000, `${route}: ${queriesMs.join(', ')} ms`)
    s3.resume()
    return await responses
  } finally {
    s3.resume()
  }
}

const archived = await createArchived()

for (const [route, send] of Object.entries(ON_EMPTY)) {
  test(`storage that hangs during requests of the ${route} delays no query of another company`, async () => {
    const responses = await assertOthersAreFast(await createEmpty(), route, send)
    for (const { status, headers } of responses) {
      // A tree without events has no tiles.
      assert([200, 409, route === 'tile' ? 404 : 200].includes(status), String(status))
      if (status === 409) assert(Number(headers.get('retry-after')) > 0)
    }
  })
}

for (const [route, send] of Object.entries(ON_ARCHIVED)) {
  test(`storage that hangs during requests of the ${route} delays no query of another company`, async () => {
    const responses = await assertOthersAreFast(archived, route, send)
    for (const { status, text } of responses) assert([200, 201, 503].includes(status), text)
  })
}

test('an empty workspace gets its checkpoint once the storage responds', async () => {
  const [first] = await createEmpty()
  assert(first)
  const send = get((id) => `/v1/workspaces/${id}/checkpoint`)
  s3.mode = 'hang'
  const { status, headers } = await within(3_000, send(first))
  s3.resume()
  assert.equal(status, 409)
  assert(Number(headers.get('retry-after')) > 0)
  await eventually(async () => assert.equal((await send(first)).status, 200))
})
