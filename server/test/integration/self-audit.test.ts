import assert from 'node:assert/strict'
import { readdirSync, renameSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pino } from 'pino'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { hasEventAbout } from '../../src/ledger/recent-event-store.ts'
import { startArchiveWorker } from '../../src/outlet/archive/archive-worker.ts'
import { recordFailures } from '../../src/outlet/archive/record-failures.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { createMetrics, type Metrics } from '../../src/platform/metrics.ts'
import { newId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { issueKey } from '../../src/tenancy/key/issue-key.ts'
import { getSystemWorkspace } from '../../src/tenancy/workspace/workspace-store.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { enroll } from '../harness/dashboard/console.ts'
import { readAudit } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { explain } from '../harness/database/explain.ts'
import { download, makeExport } from '../harness/export/exports.ts'
import { assertChainsHold } from '../harness/event/ledger.ts'
import { logIn } from '../harness/sign-in/login.ts'
import { SECRET_KEY, startTestApp, type TestApp } from '../harness/app/start-app.ts'

const HOUR_MS = 3_600_000
/** In the past, so that the archiver considers every event, whatever the tests add to the clock. */
const { clock, advance } = manualClock(Date.now() - 12 * HOUR_MS)
const env = { ANNALS_TRUSTED_PROXIES: '127.0.0.1' }
const annals = await startTestApp({ clock, env, role: 'api' })
const other = await startTestApp({ clock, env, role: 'api', databaseUrl: annals.database.url })
after(async () => {
  await other[Symbol.asyncDispose]()
  await annals[Symbol.asyncDispose]()
})
const { db } = annals.app.database
const { connection } = annals.database
const commandEnv = {
  ANNALS_DATABASE_URL: annals.database.url,
  ANNALS_SECRET_KEY: SECRET_KEY,
  ANNALS_ARCHIVE_URL: annals.archiveUrl,
}
async function countRuns({ archiveRuns }: Metrics, result: string): Promise<number | undefined> {
  const { values } = await archiveRuns.get()
  return values.find(({ labels }) => labels.result === result)?.value
}

const OPERATOR = { id: 'operator', role: 'operator' }

async function entriesOf(company: CreatedCompany, action: string) {
  return (await readAudit(annals, company)).filter((entry) => entry.action === action)
}

test('refused downloads are counted per caller and code, with at most one entry per minute', async () => {
  const company = await annals.createCompany()
  const { workspaceKey: key, companyKey } = company
  const jobId = await makeExport(annals, key)
  const path = `/v1/exports/${jobId}/download`
  await annals.call('POST', `/v1/exports/${jobId}/cancel`, { key })
  const refusals = async () =>
    (await entriesOf(company, 'EXPORT_DOWNLOAD_REFUSED')).map(({ actor, resource, metadata }) => {
      assert.deepEqual(resource, { type: 'export_job', id: jobId })
      assert.deepEqual([actor.role, metadata.code], ['key', 'export_not_downloadable'])
      return metadata.attempts
    })
  assert.equal((await annals.call('GET', path, { key })).status, 409)
  await eventually(async () => assert.deepEqual(await refusals(), [1]))
  for (let times = 0; times < 20; times += 1) await annals.call('GET', path, { key })
  await annals.call('GET', path, { key: companyKey })
  // The other key's refusal is written, and the twenty wait for the minute to end.
  await eventually(async () => assert.deepEqual(await refusals(), [1, 1]))
  advance(60_000)
  await eventually(async () => assert.deepEqual(await refusals(), [1, 1, 20]))
})

test('a download refused before its export is read has an entry if the company has the export', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const [production, staging] = company.workspaces
  assert(production && staging)
  const jobId = await makeExport(annals, production.workspaceKey)
  const stranger = await annals.createCompany()
  const foreign = await makeExport(annals, stranger.workspaceKey)
  const limits = { name: 'Writer', permissions: ['events:write' as const], expiresAt: null }
  const options = { companyId: company.company.id, workspaceId: production.id, ...limits }
  const { text: writer } = await db.transaction().execute((trx) => issueKey(trx, options, clock()))
  const viewer = await enroll(annals, company, 'VIEWER', production)
  for (const id of [newId(), foreign, jobId]) {
    const { status } = await annals.call('GET', `/v1/exports/${id}/download`, { key: writer })
    assert.equal(status, 403)
  }
  const { status } = await viewer.call('GET', `/dashboard/exports/${jobId}/download`)
  assert.equal(status, 403)
  const hidden = { key: staging.workspaceKey }
  assert.equal((await annals.call('GET', `/v1/exports/${jobId}/download`, hidden)).status, 404)
  await eventually(async () => {
    const entries = await entriesOf(company, 'EXPORT_DOWNLOAD_REFUSED')
    assert.deepEqual(
      entries.map(({ actor, resource, metadata }) => [actor.role, resource.id, metadata.code]),
      [
        ['key', jobId, 'insufficient_scope'],
        ['VIEWER', jobId, 'insufficient_role'],
        ['key', jobId, 'not_found'],
      ],
    )
  })
  assert.deepEqual(await entriesOf(stranger, 'EXPORT_DOWNLOAD_REFUSED'), [])
})

test('a download that is refused because the storage is unreachable has no entry', async () => {
  const company = await annals.createCompany()
  const { workspaceKey: key } = company
  await annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })
  assert((await archiveAll(annals)).events > 0)
  const filters = {
    from: new Date(clock() - HOUR_MS).toISOString(),
    to: new Date(clock() + HOUR_MS).toISOString(),
  }
  const open = await makeExport(annals, key, { source: 'HOT_AND_ARCHIVED', filters })
  const canceled = await makeExport(annals, key)
  await annals.call('POST', `/v1/exports/${canceled}/cancel`, { key })
  const folder = new URL(annals.archiveUrl).pathname
  await rename(folder, `${folder}-away`)
  try {
    const { status } = await annals.call('GET', `/v1/exports/${open}/download`, { key })
    assert.equal(status, 503)
  } finally {
    await rename(`${folder}-away`, folder)
  }
  await annals.call('GET', `/v1/exports/${canceled}/download`, { key })
  const entries = await eventually(async () => {
    const found = await entriesOf(company, 'EXPORT_DOWNLOAD_REFUSED')
    assert(found.length > 0)
    return found
  })
  assert.deepEqual(
    entries.map(({ resource }) => resource.id),
    [canceled],
  )
})

/** Uses up the attempts of an account from one address, then tries this many more. */
async function exceed(node: TestApp, email: string, address: string, more: number) {
  const responses = []
  for (let tries = 0; tries < 10 + more; tries += 1) {
    const headers = { 'x-forwarded-for': address }
    responses.push(await logIn(node, { email, password: 'wrong horse' }, headers))
  }
  const refused = responses.slice(10)
  for (const { status } of refused) assert.equal(status, 429)
  return refused.map(({ json: { error, code } }) => ({ error, code }))
}

test('throttled sign-ins get one entry per account and hour across all nodes, which counts every attempt', async () => {
  const company = await annals.createCompany()
  const { email } = company.user
  const throttled = (tenant = company) => entriesOf(tenant, 'LOGIN_THROTTLED')
  const counts = async () => (await throttled()).map(({ metadata }) => metadata.attempts)
  await exceed(annals, email, '198.51.100.1', 30)
  await exceed(other, email.toUpperCase(), '198.51.100.2', 4)
  // A node reports in order, so once it has an entry for the later account, it has tried the first one.
  const later = [await annals.createCompany(), await annals.createCompany()] as const
  await exceed(annals, later[0].user.email, '198.51.100.5', 1)
  await exceed(other, later[1].user.email, '198.51.100.6', 1)
  advance(HOUR_MS)
  for (const tenant of later) {
    await eventually(async () => assert.equal((await throttled(tenant)).length, 1))
  }
  assert.equal((await counts()).length, 1)
  // A node that isn't the first of an hour keeps its count.
  advance(HOUR_MS)
  await eventually(async () => assert.equal((await counts()).length, 2))
  assert.deepEqual(new Set(await counts()), new Set([30, 4]))
  const [first] = await throttled()
  assert.deepEqual(first?.actor, { email })
  assert.equal(first?.resource.type, 'user')
  assert.match(first?.metadata.address, /^198\.51\.100\.[12]$/)
  const rows = await query(
    connection,
    `select ts from event where action = 'LOGIN_THROTTLED' and resource_id = '${first?.resource.id}' order by seq`,
  )
  const times = rows.map(({ ts }) => new Date(String(ts)).getTime())
  for (const [nth, time] of times.entries()) {
    assert(nth === 0 || time - (times[nth - 1] ?? 0) >= HOUR_MS - 1_000)
  }
  await assertChainsHold(annals)
})

test('throttled sign-ins of unknown accounts get the same response and no entry', async () => {
  const company = await annals.createCompany()
  const unknown = await exceed(annals, `no-${company.user.email}`, '198.51.100.3', 2)
  const known = await exceed(annals, company.user.email, '198.51.100.4', 2)
  assert.deepEqual(unknown, known)
  advance(HOUR_MS)
  // Reported in order, so the unknown account has been handled too.
  await eventually(async () =>
    assert.equal((await entriesOf(company, 'LOGIN_THROTTLED')).length, 1),
  )
  const stored = await query(
    connection,
    `select action from event where action = 'LOGIN_THROTTLED' and metadata ~ '198\\.51\\.100\\.[34]"'`,
  )
  assert.equal(stored.length, 1)
})

test('a node writes the throttled sign-ins that it has counted when it stops', async () => {
  const company = await annals.createCompany()
  {
    await using node = await startTestApp({
      clock,
      env,
      role: 'api',
      databaseUrl: annals.database.url,
    })
    await exceed(node, company.user.email, '198.51.100.7', 3)
  }
  const entries = await entriesOf(company, 'LOGIN_THROTTLED')
  assert.deepEqual(
    entries.map(({ metadata }) => metadata.attempts),
    [3],
  )
})

test('looking for a recent entry uses an index', async () => {
  const company = await annals.createCompany()
  const workspaceId = await getSystemWorkspace(db, company.company.id)
  const about = { workspaceId, action: 'LOGIN_THROTTLED', resourceId: company.company.id }
  const plan = await explain(annals.app.database.pool, (explained) =>
    hasEventAbout(explained, about, { nowMs: clock(), withinMs: HOUR_MS }),
  )
  const scans = plan.filter((node) => node['Relation Name'] !== undefined)
  assert(scans.length > 0)
  for (const node of scans) assert.match(node['Index Cond'] ?? '', /resource_id = .* AND \(ts > /)
})

test('annals verify writes one entry per company, with the first bad event of a broken chain', async () => {
  const intact = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const broken = await annals.createCompany()
  const events = Array.from({ length: 3 }, () => ({ category: 'c', action: 'a' }))
  const { json } = await annals.call('POST', '/v1/events/batch', {
    key: broken.workspaceKey,
    body: { events },
  })
  const eventId = json.results[1].id
  await query(connection, `update event set action = 'b' where id = '${eventId}'`)
  const { code } = await runCommandInHost(['verify'], commandEnv)
  await query(connection, `update event set action = 'a' where id = '${eventId}'`)
  assert.equal(code, 1)
  const entryOf = ({ company }: CreatedCompany, metadata: object) => ({
    action: 'VERIFY_FINISHED',
    actor: OPERATOR,
    resource: { type: 'company', id: company.id },
    metadata: { ...metadata, address: 'command line' },
  })
  assert.deepEqual(await readAudit(annals, intact), [
    entryOf(intact, { status: 'HOLDS', workspaces: 3, events: 0 }),
  ])
  const [entry, ...others] = await readAudit(annals, broken)
  assert.deepEqual(others, [])
  const { verdict, ...metadata } = entry?.metadata ?? {}
  assert.match(verdict, /^The chain is broken at event 2: /)
  const where = { workspaceId: broken.workspace.id, seq: 2, eventId }
  const expected = { status: 'BROKEN', workspaces: 2, events: 1, ...where }
  assert.deepEqual({ ...entry, metadata }, entryOf(broken, expected))
  await assertChainsHold(annals)
})

test('annals verify prints its verdict and exits as usual if no entry can be written', async () => {
  const company = await annals.createCompany()
  await query(connection, 'revoke update on chain_head from annals_serving')
  let run
  try {
    run = await runCommandInHost(['verify'], commandEnv)
  } finally {
    await query(connection, 'grant update on chain_head to annals_serving')
    // The writer has noticed it too.
    await eventually(async () => assert.equal((await annals.call('GET', '/ready')).status, 200))
  }
  assert.equal(run.code, 0, run.stderr)
  assert.match(run.stdout, /^ok: \d+ events in \d+ workspaces, every chain is intact\n$/)
  const { id } = company.company
  assert.match(run.stderr, new RegExp(`The verdict is not in the audit log of company ${id}: `))
  assert.deepEqual(await readAudit(annals, company), [])
})

test('failed archive runs of the command and the worker write one entry per company and hour', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const unaffected = await annals.createCompany()
  for (const { workspaceKey: key } of company.workspaces) {
    const body = { category: 'c', action: 'a' }
    assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 201)
  }
  // Only these workspaces have events that are due, so only they can fail.
  await query(connection, 'revoke insert on segment from annals_keeper')
  const logger = createLogger('silent')
  const audit = createServiceAudit(clock)
  const { archive } = annals.app
  const cutSignal = new AbortController().signal
  const farAhead = () => clock() + 800 * 24 * HOUR_MS
  try {
    const before = new Date(clock() + HOUR_MS).toISOString()
    for (const _time of ['first', 'second']) {
      const { code, stdout } = await runCommandInHost(['archive', '--before', before], commandEnv)
      assert.equal(code, 1)
      assert.match(stdout, /FAILED: \d+ workspaces could not be archived/)
    }
    const metrics = createMetrics()
    const parts = { connection, db, audit, archive, clock: farAhead, logger, cutSignal, metrics }
    await using worker = startArchiveWorker(parts)
    await worker.runNow()
    assert.equal(await countRuns(metrics, 'partial'), 1)
  } finally {
    await query(connection, 'grant insert on segment to annals_keeper')
  }
  const workspaceIds = company.workspaces.map(({ id }) => id).toSorted()
  const [entry, ...others] = await entriesOf(company, 'ARCHIVE_FAILED')
  assert.deepEqual(entry?.actor, OPERATOR)
  assert.deepEqual(entry?.resource, { type: 'company', id: company.company.id })
  assert.deepEqual(entry?.metadata.workspaceIds.toSorted(), workspaceIds)
  assert.deepEqual(
    others.map(({ actor }) => actor),
    [{ id: 'annals', role: 'service' }],
  )
  assert.deepEqual(await entriesOf(unaffected, 'ARCHIVE_FAILED'), [])
})

test('failures before an archive run is refused have their entry', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  for (const { workspaceKey: key } of company.workspaces) {
    const body = { category: 'c', action: 'a' }
    assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 201)
  }
  // The archiver takes workspaces in this order.
  const [failing = ''] = company.workspaces.map(({ id }) => id).toSorted()
  const folder = new URL(annals.archiveUrl).pathname
  const marker = join(
    folder,
    readdirSync(folder).find((name) => name.startsWith('annals-archive-')) ?? '',
  )
  const lines: string[] = []
  const write = (line: string): void => {
    lines.push(line)
    const isFailing = line.includes('archive.failed') && line.includes(failing)
    if (isFailing) renameSync(marker, `${folder}-marker`)
  }
  const logger = pino({ level: 'error' }, { write })
  const audit = createServiceAudit(clock)
  const { archive } = annals.app
  const cutSignal = new AbortController().signal
  const farAhead = () => clock() + 800 * 24 * HOUR_MS
  await query(connection, 'revoke insert on segment from annals_keeper')
  try {
    const metrics = createMetrics()
    const parts = { connection, db, audit, archive, clock: farAhead, logger, cutSignal, metrics }
    await using worker = startArchiveWorker(parts)
    await worker.runNow()
    assert.equal(await countRuns(metrics, 'failed'), 1)
  } finally {
    await query(connection, 'grant insert on segment to annals_keeper')
    await rename(`${folder}-marker`, marker)
  }
  assert.match(lines.at(-1) ?? '', /archive\.refused/)
  assert.deepEqual(
    (await entriesOf(company, 'ARCHIVE_FAILED')).map(({ metadata }) => metadata.workspaceIds),
    [[failing]],
  )
})

test('failures of the archive are one entry per company and hour from all nodes', async () => {
  const company = await annals.createCompany()
  const failures = [
    {
      companyId: company.company.id,
      workspaceId: company.workspace.id,
      plan: company.company.plan,
    },
  ]
  const deps = { db, audit: createServiceAudit(clock), clock, logger: createLogger('silent') }
  const record = () => recordFailures(failures, deps)
  await Promise.all([record(), record(), record()])
  assert.equal((await entriesOf(company, 'ARCHIVE_FAILED')).length, 1)
  advance(HOUR_MS)
  await record()
  assert.equal((await entriesOf(company, 'ARCHIVE_FAILED')).length, 2)
})

test('a company key finds the audit log in its workspaces, queries it and exports it', async () => {
  const company = await annals.createCompany()
  const { companyKey: key, workspaceKey } = company
  const jobId = await makeExport(annals, workspaceKey)
  const { json: list } = await annals.call('GET', '/v1/workspaces', { key })
  const system = list.workspaces.find((workspace: { system: boolean }) => workspace.system)
  const { json } = await annals.call('GET', `/v1/events?workspaceId=${system.id}`, { key })
  const [event] = json.data
  assert.deepEqual([event.action, event.resource.id], ['EXPORT_REQUESTED', jobId])
  const exported = await makeExport(annals, key, { filters: { workspaceId: system.id } })
  const { text } = await download(annals, key, exported)
  const rows = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    rows.map(({ id }) => id),
    [event.id],
  )
  // Neither without its id nor with a workspace key.
  const { json: all } = await annals.call('GET', '/v1/events', { key })
  assert.deepEqual(all.data, [])
  const foreign = await annals.call('GET', `/v1/events/${event.id}`, { key: workspaceKey })
  assert.equal(foreign.status, 404)
})
