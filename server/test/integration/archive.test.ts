import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type EventFilter, NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { eventsOf } from '../../src/ledger/hot/hot-page.ts'
import { readEvents } from '../../src/ledger/reader.ts'
import { footerSha256Of } from '../../src/ledger/segment/segment-footer.ts'
import {
  SegmentDamagedError,
  SegmentMissingError,
} from '../../src/ledger/segment/segment-reader.ts'
import { listSegments, readArchivedSeq } from '../../src/ledger/segment/segment-store.ts'
import { tryLockArchive, unlockArchive } from '../../src/outlet/archive/archive-store.ts'
import { archiveWorkspace } from '../../src/outlet/archive/archive-workspace.ts'
import { clearDrafts } from '../../src/outlet/archive/clear-drafts.ts'
import { ReadBack } from '../../src/outlet/archive/read-back.ts'
import { jsonlRow } from '../../src/outlet/export/format/format-jsonl.ts'
import { takeSnapshot } from '../../src/outlet/export/snapshot.ts'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { systemClock as clock } from '../../src/platform/time/clock.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import type { ObjectStore } from '../../src/platform/object-store/object-store.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { archiveAll, assertNoStrays, listFiles, openKeeper } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook, readDeliveries } from '../harness/webhook/webhooks.ts'

const annals = await startTestApp({ env: ANY_DESTINATION })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const { database, archive } = annals.app
const logger = createLogger('silent')
const keeper = openKeeper(annals)
after(() => keeper[Symbol.asyncDispose]())

async function send(tenant: CreatedCompany, count: number, more: object = {}): Promise<void> {
  const events = Array.from({ length: count }, (_, nth) => ({
    category: nth % 2 === 0 ? 'even' : 'odd',
    action: `action ${nth}`,
    timestamp: new Date(Date.UTC(2026, 0, 1) + nth * 60_000).toISOString(),
    actor: { id: `user ${nth % 3}`, email: `u${nth % 3}@example.com` },
    metadata: { nth, text: 'tab\there "quoted" \\ ünïcode 😀', nested: [null, { a: 1.5 }] },
    ...more,
  }))
  for (let from = 0; from < count; from += 500) {
    const body = { events: events.slice(from, from + 500) }
    const key = tenant.workspaceKey
    const response = await annals.call('POST', '/v1/events/batch', { key, body })
    assert.equal(response.status, 200, response.text)
  }
}

/** The whole chain, as an export would contain it. */
async function readAll(
  workspaceId: WorkspaceId,
  filter: Partial<EventFilter> = {},
): Promise<string> {
  const run = { workspaceId, fromSeq: 1, toSeq: await headOf(workspaceId) }
  let text = ''
  const reading = readEvents({ database, archive }, run, { ...NO_FILTER, ...filter }, () => ({
    rows: 100,
    bytes: Infinity,
  }))
  for await (const page of reading) text += eventsOf(page).map(jsonlRow).join('')
  return text
}

const headOf = async (workspaceId: WorkspaceId): Promise<number> =>
  Number(
    (
      await query(connection, `select seq from chain_head where workspace_id = '${workspaceId}'`)
    )[0]?.['seq'],
  )
const countHot = async (workspaceId: WorkspaceId): Promise<number> =>
  Number(
    (
      await query(
        connection,
        `select count(*) as n from event where workspace_id = '${workspaceId}'`,
      )
    )[0]?.['n'],
  )
const verify = (workspaceId: WorkspaceId) => verifyChain(database, archive, workspaceId)

/** The first file of a workspace. */
const fileOf = (workspaceId: WorkspaceId): string =>
  join(new URL(annals.archiveUrl).pathname, listFiles(annals, workspaceId)[0] ?? '')

test('archived events leave the table and are read back byte for byte, and the chain stays valid', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 1_200)
  const before = await readAll(id)
  await archiveAll(annals)
  assert.equal(await countHot(id), 0)
  assert.equal(await readArchivedSeq(database.db, id), 1_200)
  assert.equal(await readAll(id), before)
  assert.deepEqual(await verify(id), { ok: true, workspaceId: id, events: 1_200 })
  await send(tenant, 300)
  assert.equal((await readAll(id)).split('\n').length - 1, 1_500)
  assert.deepEqual(await verify(id), { ok: true, workspaceId: id, events: 1_500 })
  assert.equal((await archiveAll(annals)).events, 300)
  assert.equal((await archiveAll(annals)).events, 0, 'nothing is archived twice')
  assert.deepEqual(await verify(id), { ok: true, workspaceId: id, events: 1_500 })
})

test('the catalog stores the digest of each footer', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 10)
  await archiveAll(annals)
  const [segment] = await listSegments(database.db, {
    workspaceId: id,
    fromSeq: 1,
    toSeq: 10,
    limit: 1,
  })
  assert.equal(segment?.footerSha256, footerSha256Of(readFileSync(fileOf(id))))
})

test('the command reports what it archived, and what it left and why', async () => {
  const [lagging, busy, plain] = [
    await annals.createCompany(),
    await annals.createCompany(),
    await annals.createCompany(),
  ]
  const webhookId = await makeWebhook(annals, lagging, { url: 'http://127.0.0.1:9/' })
  const rest = `update webhook set resting_until = now() + interval '1 hour' where id = '${webhookId}'`
  await query(connection, rest)
  for (const [tenant, count] of [
    [lagging, 7],
    [busy, 8],
    [plain, 9],
  ] as const) {
    await send(tenant, count)
  }
  const archiveNow = () =>
    runCommandInHost(['archive', '--before', new Date(Date.now() + 1_000).toISOString()], {
      ANNALS_DATABASE_URL: annals.database.url,
      ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
      ANNALS_ARCHIVE_URL: annals.archiveUrl,
    })
  const first = await keeper.db.connection().execute(async (other) => {
    assert(await tryLockArchive(other, busy.workspace.id))
    const outcome = await archiveNow()
    await unlockArchive(other, busy.workspace.id)
    return outcome
  })
  assert.deepEqual(first.stdout.split('\n'), [
    'archived 9 events of 1 workspaces',
    'Skipped 7 events that have yet to be sent to webhooks.',
    'Skipped 1 workspaces that another process is archiving.',
    '',
  ])
  assert.equal(first.code, 0, first.stderr)
  await query(connection, `update webhook set status = 'DISABLED' where id = '${webhookId}'`)
  assert.equal((await archiveNow()).stdout, 'archived 15 events of 2 workspaces\n')
})

test('a filter finds the same events in the archive as in the table', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 600)
  const filters: Partial<EventFilter>[] = [
    { category: 'odd' },
    { action: 'action 7' },
    { actorId: 'user 2' },
    { actorEmail: 'u1@example.com' },
    { fromMs: Date.UTC(2026, 0, 1, 2), toMs: Date.UTC(2026, 0, 1, 3) },
    { category: 'none' },
    { resourceType: 'none' },
  ]
  const before = await Promise.all(filters.map((filter) => readAll(id, filter)))
  await archiveAll(annals)
  assert.deepEqual(await Promise.all(filters.map((filter) => readAll(id, filter))), before)
  assert(before[0] !== '' && before[4] !== '')
})

test('a storage that fails at any step loses nothing, and the next run completes', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 100)
  const before = await readAll(id)
  const broken: Partial<ObjectStore>[] = [
    { put: () => Promise.reject(new Error('disk full')) },
    { read: async () => null },
    { read: async (key) => (await archive.read(key))?.subarray(1) ?? null },
  ]
  for (const part of broken) {
    const { failed } = await archiveAll(annals, { ...archive, ...part })
    assert.equal(failed, 1)
    assert.equal(await countHot(id), 100)
    assert.equal(await readArchivedSeq(database.db, id), 0)
    assert.equal(await readAll(id), before)
  }
  assert.equal((await archiveAll(annals)).events, 100)
  assert.equal(await readAll(id), before)
  assert((await verify(id)).ok)
  await assertNoStrays(annals)
})

test('a file that an archiver could neither catalog nor delete is deleted by the next run', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 100)
  // As if the archiver crashed after writing the file.
  const dead = () => Promise.reject(new Error('gone'))
  assert.equal((await archiveAll(annals, { ...archive, read: dead, delete: dead })).failed, 1)
  const [left] = listFiles(annals, id)
  assert(left !== undefined)
  await archiveAll(annals)
  assert.equal(listFiles(annals, id).length, 1)
  assert.notEqual(listFiles(annals, id)[0], left)
  await assertNoStrays(annals)
})

test('a file in the catalog is never deleted', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 100)
  await archiveAll(annals)
  await query(
    connection,
    `insert into segment_draft select workspace_id, object_key, now() from segment where workspace_id = '${id}'`,
  )
  await archiveAll(annals)
  await assertNoStrays(annals)
  assert((await verify(id)).ok)
})

test('a restored copy of the database does not delete a file that the original catalogs', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 100)
  await archiveAll(annals)
  const files = listFiles(annals, id)
  const own = `where workspace_id = '${id}'`
  const note = `insert into segment_draft select workspace_id, object_key, now() from segment ${own}`
  const run = (text: string) => query(connection, text)
  await run(
    `create table kept as select * from segment ${own}; ${note}; delete from segment ${own}`,
  )
  await clearDrafts({ database: keeper, archive, logger }, id)
  assert.deepEqual(listFiles(annals, id), files)
  await query(
    connection,
    `insert into segment select * from kept; delete from segment_draft ${own}`,
  )
  assert((await verify(id)).ok)
})
const CLEARING: [string, Partial<ObjectStore>][] = [
  ['has deleted as a draft', {}],
  ['is about to delete as a draft', { delete: () => Promise.reject(new Error('not yet')) }],
]
for (const [title, part] of CLEARING) {
  test(`a file that another archiver ${title} is not cataloged`, async () => {
    const tenant = await annals.createCompany()
    const { id } = tenant.workspace
    await send(tenant, 100)
    const before = await readAll(id)
    const read = async (key: string): Promise<Buffer | null> => {
      const bytes = await archive.read(key)
      // Another archiver assumes that this one is dead, just before it writes the catalog entry.
      await clearDrafts({ database: keeper, archive: { ...archive, ...part }, logger }, id)
      return bytes
    }
    const { events, workspacesBusy } = await archiveAll(annals, { ...archive, read })
    assert.deepEqual({ events, workspacesBusy }, { events: 0, workspacesBusy: 1 })
    assert.equal(await readArchivedSeq(database.db, id), 0)
    assert.equal(await readAll(id), before)
    await assertNoStrays(annals)
    assert.equal((await archiveAll(annals)).events, 100)
  })
}

test('of two archivers without a lock, one archives and the other leaves no file', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 500)
  const before = await readAll(id)
  const { promise: bothHavePut, resolve } = Promise.withResolvers<void>()
  let count = 0
  const put = async (key: string, bytes: Buffer): Promise<void> => {
    await archive.put(key, bytes)
    count += 1
    if (count === 2) resolve()
    await bothHavePut
  }
  const archiveAlone = async (): Promise<number> => {
    await using readBack = new ReadBack()
    const deps = { database: keeper, archive: { ...archive, put }, readBack, clock, logger }
    const run = { workspaceId: id, toSeq: 500 }
    return (await archiveWorkspace(deps, run, new AbortController().signal)).moved
  }
  const moved = await Promise.all([archiveAlone(), archiveAlone()])
  assert.deepEqual(moved.toSorted(), [0, 500])
  assert.equal(await readAll(id), before)
  await assertNoStrays(annals)
})

test('a crash between the catalog and the removal leaves every event once', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 100)
  const before = await readAll(id)
  await query(connection, 'revoke delete on event from annals_keeper')
  try {
    assert.equal((await archiveAll(annals)).failed, 1)
  } finally {
    await query(connection, 'grant delete on event to annals_keeper')
  }
  assert.equal(await readArchivedSeq(database.db, id), 100)
  assert.equal(await countHot(id), 100)
  assert.equal(await readAll(id), before)
  assert.deepEqual(await verify(id), { ok: true, workspaceId: id, events: 100 })
  await archiveAll(annals)
  assert.equal(await countHot(id), 0)
  assert.equal(await readAll(id), before)
})

test('removes nothing that the catalog does not list', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 100)
  await query(connection, 'revoke insert on segment from annals_keeper')
  try {
    assert.equal((await archiveAll(annals)).failed, 1)
  } finally {
    await query(connection, 'grant insert on segment to annals_keeper')
  }
  assert.equal(await countHot(id), 100)
  assert.equal((await archiveAll(annals)).events, 100)
})

test('two archivers at once archive each event once', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 500)
  const before = await readAll(id)
  const results = await Promise.all([1, 2, 3].map(() => archiveAll(annals)))
  assert.equal(
    results.reduce((sum, { events }) => sum + events, 0),
    500,
  )
  assert.equal(await readAll(id), before)
  assert((await verify(id)).ok)
})

test('an export that runs while its events are archived is exact', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 1_000)
  const before = await readAll(id)
  const run = { workspaceId: id, fromSeq: 1, toSeq: 1_000 }
  let text = ''
  let pages = 0
  const limit = () => ({ rows: 100, bytes: Infinity })
  for await (const page of readEvents({ database, archive }, run, NO_FILTER, limit)) {
    text += eventsOf(page).map(jsonlRow).join('')
    pages += 1
    if (pages === 3) await archiveAll(annals)
  }
  assert.equal(text, before)
})
test('an export created while its events are archived contains all of them', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 100)
  const filter = { ...NO_FILTER, fromMs: Date.UTC(2025, 0, 1), toMs: Date.UTC(2027, 0, 1) }
  let hasArchived = false
  // The archiver can run between any two statements of the snapshot. Here it runs after the first.
  const db = database.db.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (!hasArchived) {
        hasArchived = true
        await archiveAll(annals)
      }
      return result
    },
  })
  const hotSinceMs = Date.now() - 86_400_000
  const ranges = await takeSnapshot(db, [id], { source: 'HOT_AND_ARCHIVED', filter, hotSinceMs })
  assert.deepEqual(ranges, [{ workspaceId: id, fromSeq: 1, toSeq: 100 }])
})
test('reports a flipped byte or a missing file, and never skips events silently', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 50)
  await archiveAll(annals)
  const file = fileOf(id)
  const bytes = readFileSync(file)
  const flipped = Buffer.from(bytes)
  flipped[Math.floor(bytes.length / 2)]! ^= 1 // The middle of a non-empty file.
  writeFileSync(file, flipped)
  await assert.rejects(readAll(id), SegmentDamagedError)
  const damaged = await verify(id)
  const [key = ''] = listFiles(annals, id)
  assert.equal(
    damaged.ok ? '' : damaged.problem,
    `the file ${key} (events 1 to 50) is not the one that was archived: its SHA-256 differs`,
  )
  rmSync(file)
  await assert.rejects(readAll(id), SegmentMissingError)
  const missing = await verify(id)
  assert.equal(missing.ok ? '' : missing.problem, `the archive has no file ${key} (events 1 to 50)`)
  writeFileSync(file, bytes)
  assert((await verify(id)).ok)
})
test('does not archive an event that does not match its hash', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  await send(tenant, 20)
  await query(
    connection,
    `update event set category = 'edited' where workspace_id = '${id}' and seq = 7`,
  )
  assert.equal((await archiveAll(annals)).failed, 1)
  assert.equal(await countHot(id), 20)
  assert.equal(await readArchivedSeq(database.db, id), 0)
  assert.deepEqual(listFiles(annals, id), [])
})
test('keeps events that a webhook still has to send', async () => {
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver({ status: 500 })
  const webhookId = await makeWebhook(annals, tenant, { url: receiver.url })
  await send(tenant, 5)
  const statuses = async () =>
    (await readDeliveries(annals, webhookId)).map(({ status }) => status).join()
  await eventually(async () =>
    assert.equal(await statuses(), Array(5).fill('RETRY_SCHEDULED').join()),
  )
  const { events, eventsHeld } = await archiveAll(annals)
  assert.deepEqual({ events, eventsHeld }, { events: 0, eventsHeld: 5 })
  receiver.respondWith({ status: 200 })
  await query(
    connection,
    `update webhook_delivery set due_at = now() where webhook_id = '${webhookId}'`,
  )
  await eventually(async () => assert.equal(await statuses(), Array(5).fill('SUCCEEDED').join()))
  assert.equal((await archiveAll(annals)).events, 5)
})
test('keeps events that a webhook has not seen yet', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  const webhookId = await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:9/' })
  // The webhook is resting, so it doesn't see new events for now.
  const rest = `update webhook set resting_until = now() + interval '1 hour' where id = '${webhookId}'`
  await query(connection, rest)
  await send(tenant, 20)
  assert.equal((await archiveAll(annals)).events, 0)
  assert.equal(await countHot(id), 20)
  await query(connection, `update webhook set status = 'DISABLED' where id = '${webhookId}'`)
  assert.equal((await archiveAll(annals)).events, 20)
})
test('reports files missing from the catalog and rows missing from the table', async () => {
  const tenant = await annals.createCompany()
  const { id } = tenant.workspace
  let failedBefore = 0
  for (let times = 0; times < 3; times += 1) {
    await send(tenant, 10)
    failedBefore = (await archiveAll(annals)).failed
  }
  await send(tenant, 10)
  await query(connection, `delete from segment where workspace_id = '${id}' and first_seq = 11`)
  await assert.rejects(readAll(id), /no file with events 11 to 20/)
  await query(connection, `delete from segment where workspace_id = '${id}' and first_seq = 21`)
  assert.equal(
    (await archiveAll(annals)).failed,
    failedBefore + 1,
    'nothing continues from an older row',
  )
  assert.equal(listFiles(annals, id).length, 3, 'and no file is lost')
  const other = await annals.createCompany()
  await send(other, 10)
  await query(
    connection,
    `delete from event where workspace_id = '${other.workspace.id}' and seq = 4`,
  )
  await assert.rejects(readAll(other.workspace.id), /no gaps/)
  await assert.rejects(readAll(other.workspace.id, { category: 'odd' }), /no gaps/)
})
