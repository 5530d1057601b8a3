import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { startExpireWorker } from '../../src/outlet/export/job/expire-worker.ts'
import { kidOf } from '../../src/tenancy/key/key-text.ts'
import { assertId, newId, type KeyId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { addKeyUses } from '../../src/tenancy/key/key-store.ts'
import { canSeeNotice } from '../../src/tenancy/notice/notice.ts'
import { raiseNotices } from '../../src/tenancy/notice/notice-store.ts'
import { NOTICES_PER_COMPANY_MAX } from '../../src/tenancy/notice/notice-worker.ts'
import { rotateKey } from '../../src/tenancy/key/rotate-key.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { sendEvents, waitForDeliveries } from '../harness/webhook/deliveries.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { makeExport } from '../harness/export/exports.ts'
import { draftFor, findNotices, noticesOf } from '../harness/dashboard/notices.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
// The signer finds a broken chain too. With this, it looks only when the service starts.
const env = { ...ANY_DESTINATION, ANNALS_CHECKPOINT_SECONDS: '3600' }
const annals = await startTestApp({ env })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const kindsOf = (notices: readonly { kind: string }[]) => notices.map(({ kind }) => kind)

test('nodes that find one cause at the same time create one notice', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  const draft = draftFor(company)
  const created = await Promise.all(
    Array.from({ length: 8 }, () => raiseNotices(db, [draft, draft], Date.now())),
  )
  assert.equal(
    created.reduce((sum, count) => sum + count, 0),
    1,
  )
  assert.equal((await noticesOf(owner)).length, 1)
})

test('a key gets a notice 14 and 3 days before it expires, each once', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  const nowMs = Date.now()
  const create = async (name: string, days: number) => {
    const expiresAt = new Date(nowMs + days * DAY_MS).toISOString()
    const body = { name, scope: 'COMPANY', expiresAt }
    const { status, text } = await owner.call('POST', '/dashboard/keys', { body })
    assert.equal(status, 201, text)
  }
  await create('Deploy', 20)
  // Valid for less than 14 days from the start, so its first notice is that of 3 days.
  await create('Short', 10)
  await findNotices(annals, nowMs + 5 * DAY_MS)
  assert.deepEqual(await noticesOf(owner), [])
  await Promise.all([1, 2, 3].map(() => findNotices(annals, nowMs + 6.5 * DAY_MS)))
  const [first, ...others] = await noticesOf(owner)
  assert.deepEqual(others, [])
  assert.equal(first?.kind, 'KEY_EXPIRING')
  assert.match(first.message, /^The key Deploy \(annals_\w+\) expires in less than 14 days, at /)
  assert.equal(first.link, '/app/keys')
  await findNotices(annals, nowMs + 7.5 * DAY_MS)
  await findNotices(annals, nowMs + 17.5 * DAY_MS)
  await findNotices(annals, nowMs + 18 * DAY_MS)
  const messages = (await noticesOf(owner)).map(({ message }) => message.slice(0, 15))
  assert.deepEqual(messages, ['The key Deploy ', 'The key Short (', 'The key Deploy '])
})

test('a replaced key gets a notice if it is used an hour later', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  const nowMs = Date.now()
  const [row] = await query(
    annals.database.connection,
    `select id from api_key where kid = '${kidOf(company.workspaceKey)}'`,
  )
  const keyId: KeyId = assertId(String(row?.id))
  const { id: companyId } = company.company
  await db
    .transaction()
    .execute((trx) => rotateKey(trx, { companyId, keyId }, { graceMs: DAY_MS }, nowMs))
  const useAt = (atMs: number) =>
    addKeyUses(db, [
      {
        keyId,
        usedAt: new Date(atMs),
        usedIp: '192.0.2.7',
        usedEndpoint: 'POST /v1/events',
        calls: 1,
        failures: 0,
      },
    ])
  await useAt(nowMs + HOUR_MS / 2)
  await findNotices(annals, nowMs + HOUR_MS)
  assert.deepEqual(await noticesOf(owner), [])
  await useAt(nowMs + 2 * HOUR_MS)
  await findNotices(annals, nowMs + 2 * HOUR_MS)
  await findNotices(annals, nowMs + 3 * HOUR_MS)
  const [notice, ...others] = await noticesOf(owner)
  assert.deepEqual(others, [])
  assert.equal(notice?.kind, 'KEY_USED_AFTER_REPLACEMENT')
  assert.match(notice.message, /was replaced but still used at .* UTC from 192\.0\.2\.7\./)
  assert.equal(notice.workspaceId, company.workspace.id)
})

test('a webhook gets one notice while it fails, and another if it fails again after a day', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  await using receiver = await startReceiver({ status: 500 })
  const webhookId = await makeWebhook(annals, company, { url: receiver.url })
  await sendEvents(annals, company.workspaceKey, 3)
  await waitForDeliveries(annals, webhookId, 3, 'RETRY_SCHEDULED')
  const nowMs = Date.now()
  await Promise.all([findNotices(annals, nowMs), findNotices(annals, nowMs)])
  await findNotices(annals, nowMs + HOUR_MS / 2)
  const [notice, ...others] = await noticesOf(owner)
  assert.deepEqual(others, [])
  assert.equal(notice?.kind, 'WEBHOOK_FAILING')
  const { host } = new URL(receiver.url)
  const text = `The webhook ${host} is failing: 0 of 3 deliveries of the last 24 hours succeeded.`
  assert.equal(notice.message, text)
  assert.equal(notice.link, `/app/webhooks/${webhookId}`)
  const setStatus = (status: string) =>
    db.updateTable('webhook').set({ status }).where('id', '=', webhookId).execute()
  await setStatus('DISABLED')
  await findNotices(annals, nowMs + HOUR_MS / 2)
  await setStatus('ENABLED')
  await findNotices(annals, nowMs + HOUR_MS)
  assert.equal((await noticesOf(owner)).length, 1, 'it recovered for less than a day')
  await setStatus('DISABLED')
  await findNotices(annals, nowMs + HOUR_MS)
  await setStatus('ENABLED')
  for (const change of [
    `webhook set last_failure_at = last_failure_at + interval '26 hours' where id`,
    `webhook_delivery set created_at = created_at + interval '26 hours' where webhook_id`,
  ]) {
    await query(annals.database.connection, `update ${change} = '${webhookId}'`)
  }
  await findNotices(annals, nowMs + 26 * HOUR_MS)
  assert.equal((await noticesOf(owner)).length, 2)
})

test('a webhook gets no notice for a single failed attempt, but one if the attempts keep failing', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  await using receiver = await startReceiver({ status: 500 })
  const webhookId = await makeWebhook(annals, company, { url: receiver.url })
  await sendEvents(annals, company.workspaceKey, 1)
  await waitForDeliveries(annals, webhookId, 1, 'RETRY_SCHEDULED')
  // The second attempt, after five seconds, would count too.
  const later = `due_at = due_at + interval '1 day'`
  await query(
    annals.database.connection,
    `update webhook_delivery set ${later} where webhook_id = '${webhookId}'`,
  )
  const setFailures = (failure_count: number) =>
    db.updateTable('webhook').set({ failure_count }).where('id', '=', webhookId).execute()
  for (const count of [1, 2]) {
    await setFailures(count)
    await findNotices(annals, Date.now())
    assert.deepEqual(await noticesOf(owner), [], `after ${count} failed attempts`)
  }
  const health = await owner.call('GET', `/dashboard/webhooks/${webhookId}/health`)
  assert.equal(health.json.state, 'FAILING')
  await setFailures(3)
  await findNotices(annals, Date.now())
  assert.deepEqual(kindsOf(await noticesOf(owner)), ['WEBHOOK_FAILING'])
})

test('a webhook whose deliveries wait for more than an hour gets a notice that says since when', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  await using receiver = await startReceiver({ status: 500 })
  const webhookId = await makeWebhook(annals, company, { url: receiver.url })
  await sendEvents(annals, company.workspaceKey, 1)
  await waitForDeliveries(annals, webhookId, 1, 'RETRY_SCHEDULED')
  await findNotices(annals, Date.now() + 49 * HOUR_MS)
  const [notice] = await noticesOf(owner)
  assert.match(notice?.message ?? '', /is failing: deliveries have been waiting since .* UTC\.$/)
})

test('a webhook that Annals disables gets a notice with the reason', async () => {
  const company = await annals.createCompany()
  const viewer = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  await using receiver = await startReceiver({ status: 410 })
  await makeWebhook(annals, company, { url: receiver.url })
  await sendEvents(annals, company.workspaceKey, 2)
  const [notice] = await eventually(async () => {
    const notices = await noticesOf(viewer)
    assert.equal(notices.length, 1)
    return notices
  })
  assert.deepEqual([notice?.kind, notice?.severity], ['WEBHOOK_DISABLED', 'CRITICAL'])
  assert.match(notice?.message ?? '', /was disabled\. .*410/)
})

test('a broken chain gets one notice, however often it is verified', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  await sendEvents(annals, company.workspaceKey, 2)
  await asOwner(annals, (trx) =>
    trx
      .updateTable('chain_head')
      .set({ hash: 'f'.repeat(64) })
      .where('workspace_id', '=', company.workspace.id)
      .execute(),
  )
  const env = {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_ARCHIVE_URL: annals.archiveUrl,
  }
  const verified = await runCommandInHost(['verify'], env)
  assert.equal(verified.code, 1, verified.stderr)
  // The signer can have noticed the chain too.
  const verdicts = async () =>
    (await noticesOf(owner)).filter(({ message }) =>
      message.startsWith('The chain is broken at event '),
    )
  assert.deepEqual(kindsOf(await verdicts()), ['CHAIN_BROKEN'])
  for (const _time of ['first', 'second']) {
    const body = { workspaceId: company.workspace.id }
    const { json } = await owner.call('POST', '/dashboard/integrity/runs', { body })
    await eventually(async () => {
      const run = await owner.call('GET', `/dashboard/integrity/runs/${json.id}`)
      assert.equal(run.json.status, 'BROKEN')
    })
  }
  assert.deepEqual(kindsOf(await verdicts()), ['CHAIN_BROKEN'])
})

test('an export that expires gets a notice for its workspace, or else for its creator', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const [production, staging] = company.workspaces.map(({ id }) => id)
  assert(production && staging)
  const analyst = await signInAs(annals, company, 'ANALYST', [production, staging])
  const other = await signInAs(annals, company, 'ANALYST', [production, staging])
  const onlyStaging = await signInAs(annals, company, 'VIEWER', [staging])
  const jobId = await makeExport(annals, company.workspaceKey)
  const body = { source: 'HOT', format: 'CSV' }
  const own = await analyst.call('POST', '/dashboard/exports', { body })
  assert.equal(own.status, 201, own.text)
  const clock = () => Date.now() + 7 * DAY_MS + HOUR_MS
  const logger = createLogger('silent')
  const audit = createServiceAudit(clock)
  await using worker = startExpireWorker({ db, clock, logger, audit })
  await worker.runNow()
  const linksFor = async (member: typeof analyst) =>
    (await noticesOf(member)).map(({ link }) => link).toSorted()
  const shared = `/app/exports?job=${jobId}`
  assert.deepEqual(await linksFor(analyst), [shared, `/app/exports?job=${own.json.id}`].toSorted())
  assert.deepEqual(await linksFor(other), [shared])
  assert.deepEqual(await linksFor(onlyStaging), [])
  assert.deepEqual([...new Set(kindsOf(await noticesOf(other)))], ['EXPORT_EXPIRED'])
})

test('a limit gets one notice from 80% on', async () => {
  const company = await annals.createCompany()
  const admin = await signInAs(annals, company, 'ADMIN')
  const addProjects = (from: number, to: number) =>
    query(
      annals.database.connection,
      `insert into project (workspace_id, id, name)
       select '${company.workspace.id}', gen_random_uuid(), 'p' || n
         from generate_series(${from}, ${to}) as n`,
    )
  // The company has one already.
  await addProjects(1, 78)
  await findNotices(annals)
  assert.deepEqual(await noticesOf(admin), [])
  await addProjects(79, 79)
  await findNotices(annals)
  await addProjects(80, 90)
  await findNotices(annals)
  const [notice, ...others] = await noticesOf(admin)
  assert.deepEqual(others, [])
  assert.equal(notice?.kind, 'LIMIT_NEAR')
  assert.match(notice.message, /^80 of at most 100 projects are in use\./)
})

test('notices are kept for 90 days, and at most 500 per company', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  const nowMs = Date.now()
  await raiseNotices(db, [draftFor(company, { cause: 'old' })], nowMs - 90 * DAY_MS + HOUR_MS)
  await findNotices(annals, nowMs)
  assert.equal((await noticesOf(owner)).length, 1)
  await findNotices(annals, nowMs + 2 * HOUR_MS)
  assert.equal((await noticesOf(owner)).length, 0)
  const causes = Array.from({ length: NOTICES_PER_COMPANY_MAX + 5 }, (_, nth) => String(nth))
  const raiseAll = () =>
    raiseNotices(
      db,
      causes.map((cause) => draftFor(company, { cause })),
      nowMs,
    )
  await raiseAll()
  await findNotices(annals, nowMs)
  const countAll = async () => {
    const rows = await db
      .selectFrom('notice')
      .select('id')
      .where('company_id', '=', company.company.id)
      .execute()
    return rows.length
  }
  assert.equal(await countAll(), NOTICES_PER_COMPANY_MAX)
  await raiseAll()
  assert.equal(await countAll(), NOTICES_PER_COMPANY_MAX, 'deleted notices are not created again')
})

test('each role sees the notices of its workspaces and of what it can see otherwise', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const [production, staging] = company.workspaces.map(({ id }) => id)
  assert(production && staging)
  const foreign = await signInAs(annals, await annals.createCompany(), 'OWNER')
  const drafts = [
    draftFor(company, { kind: 'CHAIN_BROKEN', cause: 'p', workspaceId: production }),
    draftFor(company, { kind: 'CHAIN_BROKEN', cause: 's', workspaceId: staging }),
    draftFor(company, { kind: 'KEY_EXPIRING', workspaceId: production }),
    draftFor(company, { kind: 'LIMIT_NEAR', workspaceId: production }),
    draftFor(company, { kind: 'LIMIT_NEAR', cause: 'company', workspaceId: null }),
  ]
  assert.equal(await raiseNotices(db, drafts, Date.now()), drafts.length)
  const all = ['CHAIN_BROKEN', 'CHAIN_BROKEN', 'KEY_EXPIRING', 'LIMIT_NEAR', 'LIMIT_NEAR']
  for (const [role, workspaceIds, expected] of [
    ['OWNER', [], all],
    ['ADMIN', [], all],
    ['ANALYST', [production], ['CHAIN_BROKEN']],
    ['VIEWER', [production, staging], ['CHAIN_BROKEN', 'CHAIN_BROKEN']],
    ['VIEWER', [], []],
  ] as const) {
    const member = await signInAs(annals, company, role, workspaceIds)
    const { json } = await member.call('GET', '/dashboard/notices')
    assert.deepEqual(kindsOf(json.data).toSorted(), expected, role)
    assert.equal(json.unreadCount, expected.length)
    const { userId: id } = member
    const granted = role === 'OWNER' || role === 'ADMIN' ? null : workspaceIds
    // Decides who gets it by mail.
    const visible = drafts.filter((draft) =>
      canSeeNotice({ id, role, workspaceIds: granted }, { userId: null, ...draft }),
    )
    assert.deepEqual(kindsOf(visible).toSorted(), expected, role)
  }
  assert.deepEqual(await noticesOf(foreign), [])
})

test('each member marks notices as read for themselves, and only those they can see', async () => {
  const company = await annals.createCompany()
  const [owner, admin] = [
    await signInAs(annals, company, 'OWNER'),
    await signInAs(annals, company, 'ADMIN'),
  ]
  const foreign = await signInAs(annals, await annals.createCompany(), 'OWNER')
  for (const cause of ['1', '2', '3'])
    await raiseNotices(db, [draftFor(company, { cause })], Date.now())
  const [newest, middle] = await noticesOf(owner)
  assert(newest && middle)
  const read = (member: typeof owner, ...noticeIds: string[]) =>
    member.call('POST', '/dashboard/notices/read', { body: { noticeIds } })
  for (const _time of ['first', 'second']) {
    assert.equal((await read(owner, middle.id, newId())).status, 204)
  }
  assert.equal((await read(foreign, newest.id)).status, 204)
  const first = await owner.call('GET', '/dashboard/notices?limit=2')
  assert.equal(first.json.unreadCount, 2)
  assert.deepEqual(
    first.json.data.map(({ isRead }: { isRead: boolean }) => isRead),
    [false, true],
  )
  const next = await owner.call('GET', `/dashboard/notices?cursor=${first.json.nextCursor}`)
  assert.deepEqual([next.json.data.length, next.json.nextCursor], [1, null])
  assert.equal((await admin.call('GET', '/dashboard/notices')).json.unreadCount, 3)
  const borrowed = await admin.call('GET', `/dashboard/notices?cursor=${first.json.nextCursor}`)
  assert.deepEqual([borrowed.status, borrowed.json.code], [400, 'invalid_cursor'])
})
