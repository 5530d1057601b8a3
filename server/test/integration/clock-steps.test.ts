import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { archiveLedger } from '../../src/outlet/archive/archive-ledger.ts'
import { createLogger } from '../../src/platform/logger.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { runAnnals } from '../harness/app/annals-process.ts'
import { openKeeper } from '../harness/archive/archive.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { walkExplorer } from '../harness/dashboard/explorer.ts'
import { exportRows, storeEvents } from '../harness/export/exports.ts'
import { type TestResponse, SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Longer than the hot time of a STARTER plan. */
const STEP_MS = 231 * DAY_MS
/** By event time. Archived sources require one. */
const ALL = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
const lastHour = () => ({ ...ALL, from: new Date(Date.now() - HOUR_MS).toISOString() })

let aheadMs = 0
const clock = () => Date.now() + aheadMs
// Without workers, which would act on the events while the clock is wrong.
const annals = await startTestApp({ role: 'api', clock })
after(() => annals[Symbol.asyncDispose]())

/** Stores events while the node's clock is off by `offMs`. */
async function storeAt(offMs: number, tenant: CreatedCompany, count: number, category: string) {
  aheadMs = offMs
  const events = Array.from({ length: count }, () => ({ category, action: 'a' }))
  await storeEvents(annals, tenant.workspaceKey, events)
  aheadMs = 0
}

/** Two old events, then forty while the clock was set back, between forty and forty others. */
async function createWithStep(): Promise<CreatedCompany> {
  const tenant = await annals.createCompany({ plan: 'STARTER' })
  await storeAt(-STEP_MS, tenant, 2, 'old')
  await storeAt(0, tenant, 40, 'before')
  await storeAt(-STEP_MS, tenant, 40, 'set back')
  await storeAt(0, tenant, 40, 'after')
  return tenant
}

function countByCategory(rows: TestResponse['json'][]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { category } of rows) counts[category] = (counts[category] ?? 0) + 1
  return counts
}

async function archiveDue() {
  await using database = openKeeper(annals)
  const deps = {
    connection: annals.database.connection,
    database,
    archive: annals.app.archive,
    clock,
    logger: createLogger('silent'),
  }
  const request = { beforeMs: null, thresholds: { eventsMin: 1, overdueMs: 0 } }
  return await archiveLedger(deps, request, new AbortController().signal)
}

async function countStored({ workspace }: CreatedCompany): Promise<number> {
  const text = `select count(*) as n from event where workspace_id = '${workspace.id}'`
  return Number((await query(annals.database.connection, text))[0]?.['n'])
}

test('exports contain every hot event after the clock was set back and corrected', async () => {
  const tenant = await createWithStep()
  const read = async (source: string, filters: Record<string, string>) =>
    countByCategory(await exportRows(annals, tenant.workspaceKey, { source, filters }))
  const recent = { before: 40, after: 40 }
  assert.deepEqual(await read('HOT', lastHour()), recent)
  assert.deepEqual(await read('HOT_AND_ARCHIVED', lastHour()), recent)
  assert.deepEqual(await read('ARCHIVED', lastHour()), {})
  // Every event is either hot or archived.
  assert.deepEqual(await read('HOT', {}), { ...recent, 'set back': 40 })
  assert.deepEqual(await read('ARCHIVED', ALL), { old: 2 })
})

test('exports contain every recent event after the clock ran ahead and was corrected', async () => {
  const tenant = await annals.createCompany({ plan: 'STARTER' })
  await storeAt(0, tenant, 40, 'before')
  await storeAt(STEP_MS, tenant, 40, 'ahead')
  await storeAt(0, tenant, 40, 'after')
  for (const source of ['HOT', 'HOT_AND_ARCHIVED']) {
    const rows = await exportRows(annals, tenant.workspaceKey, { source, filters: lastHour() })
    assert.deepEqual(countByCategory(rows), { before: 40, ahead: 40, after: 40 }, source)
  }
})

test('the explorer shows every hot event after the clock was set back and corrected', async () => {
  const tenant = await createWithStep()
  const member = await signInAs(annals, tenant, 'OWNER')
  const shown = countByCategory(await walkExplorer(member))
  assert.deepEqual([shown['before'], shown['after'], shown['old']], [40, 40, undefined])
})

test('the archiver keeps recent events, whatever the clock did before', async () => {
  const tenant = await createWithStep()
  await archiveDue()
  assert.equal(await countStored(tenant), 120)
  const path = '/v1/events?limit=200'
  const { json } = await annals.call('GET', path, { key: tenant.workspaceKey })
  assert.deepEqual(countByCategory(json.data), { before: 40, after: 40 })
  aheadMs = 31 * DAY_MS
  await archiveDue()
  aheadMs = 0
  assert.equal(await countStored(tenant), 0)
})

test('a node whose clock is far from the database’s archives nothing without --before', async () => {
  const tenant = await annals.createCompany()
  await storeAt(0, tenant, 5, 'recent')
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-skew-'))
  const preload = join(folder.path, 'skew.mjs')
  await writeFile(preload, `const { now } = Date; Date.now = () => now() + ${400 * DAY_MS}`)
  const env = {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_ARCHIVE_URL: annals.archiveUrl,
    ANNALS_SECRET_KEY: SECRET_KEY,
    NODE_OPTIONS: `--import ${preload}`,
  }
  const { code, stdout, stderr } = await runAnnals(['archive'], env)
  assert.deepEqual([code, stdout, await countStored(tenant)], [1, '', 5])
  assert.match(stderr, /clock is 400 days ahead of the database's/)
  const before = new Date(Date.now() + 1_000).toISOString()
  assert.equal((await runAnnals(['archive', '--before', before], env)).code, 0)
  assert.equal(await countStored(tenant), 0)
})

test('events and exports are accepted while the clock is before 1970', async () => {
  const tenant = await annals.createCompany()
  await storeAt(-60 * 365 * DAY_MS, tenant, 1, 'early')
  aheadMs = -60 * 365 * DAY_MS
  const rows = await exportRows(annals, tenant.workspaceKey)
  aheadMs = 0
  assert.deepEqual(countByCategory(rows), { early: 1 })
})
