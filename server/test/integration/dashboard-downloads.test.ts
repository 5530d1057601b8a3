import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { readBytes } from '../harness/export/cut-downloads.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { asOwner, enroll, openDashboardDownload } from '../harness/dashboard/console.ts'
import { type Member, readAudit } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { download, storeBulk, storeEvents } from '../harness/export/exports.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const BYTES_MAX = 500_000
const annals = await startTestApp({
  env: { ANNALS_RATE_LIMITS: 'off' },
  downloadBytesMax: BYTES_MAX,
})
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const EXPORTS = '/dashboard/exports'
const TAKEN_AT_ONCE = 16_384
const refusalOf = ({ status, json }: TestResponse) => [status, json.code]

async function make(member: Member, options: object = {}): Promise<string> {
  const body = { source: 'HOT', format: 'JSONL', ...options }
  const response = await member.call('POST', EXPORTS, { body })
  assert.equal(response.status, 201, response.text)
  return response.json.id
}

/** The last entry, which must be about a download that was cut. */
async function readCut(company: CreatedCompany) {
  const entry = (await readAudit(annals, company)).at(-1)
  assert.equal(entry?.action, 'EXPORT_DOWNLOAD_CUT')
  return entry
}

/** More than the dashboard allows. */
async function createLarge() {
  const company = await annals.createCompany()
  await storeBulk(annals, company.workspaceKey, 15)
  return { company, admin: await enroll(annals, company, 'ADMIN') }
}

test('rejects a download that is known to be too large, with an alternative', async () => {
  const { company, admin } = await createLarge()
  const id = await make(admin)
  const refused = await admin.call('GET', `${EXPORTS}/${id}/download`)
  assert.deepEqual(refusalOf(refused), [413, 'download_too_large'])
  assert(refused.json.error.includes(`GET /v1/exports/${id}/download`))
  assert.match(refused.json.error, /about 0\.7 MB.*at most 0\.5 MB.*API key/)
  const { json: job } = await admin.call('GET', `${EXPORTS}/${id}`)
  assert.deepEqual([job.status, job.errorCode], ['PENDING', null])
  const [, entry] = await eventually(async () => {
    const entries = await readAudit(annals, company)
    const actions = entries.map(({ action }) => action)
    assert.deepEqual(actions, ['EXPORT_REQUESTED', 'EXPORT_DOWNLOAD_REFUSED'])
    return entries
  })
  const { actor, resource, metadata } = entry ?? {}
  assert.deepEqual(
    [actor.email, resource.id, metadata.code, metadata.attempts],
    [admin.email, id, 'download_too_large', 1],
  )
  const preflight = { body: { source: 'HOT', format: 'JSONL' } }
  const { json: estimate } = await admin.call('POST', `${EXPORTS}/preflight`, preflight)
  assert.equal(estimate.fitsDownload, false)
  const received = await download(annals, company.companyKey, id)
  assert.equal(received.trailers['x-row-count'], '15')
  const { json: again } = await admin.call('POST', `${EXPORTS}/${id}/rerun`)
  for (const route of ['download', 'evidence-pack']) {
    const known = await admin.call('GET', `${EXPORTS}/${again.id}/${route}`)
    assert.deepEqual(refusalOf(known), [413, 'download_too_large'])
  }
})

test('cuts a download that turns out to be too large, and the job stays open with its last attempt', async () => {
  const { company, admin } = await createLarge()
  const id = await make(admin)
  // Simulates an estimate that was too small: a rerun is estimated by the size of its first run.
  await sql`
    insert into export_job (company_id, id, source, format, filters, ranges, row_limit, status, bytes, created_at, expires_at)
    select company_id, gen_random_uuid(), source, format, filters, ranges, row_limit, 'SUCCEEDED', 1, created_at, expires_at
      from export_job where id = ${id}`.execute(db)
  await sql`
    update export_job set rerun_of = (select id from export_job where company_id = ${company.company.id} and bytes = 1)
     where id = ${id}`.execute(db)
  const { response, rest } = await openDashboardDownload(annals, admin, id)
  assert.equal(response.statusCode, 200)
  await assert.rejects(rest)
  assert.equal(response.complete, false)
  const job = await eventually(async () => {
    const { json } = await admin.call('GET', `${EXPORTS}/${id}`)
    assert.equal(json.lastAttempt?.code, 'download_too_large')
    return json
  })
  assert.equal(job.status, 'RUNNING')
  const { errorCode, errorMessage, failureSummary, retryHint } = job
  assert.deepEqual(
    [errorCode, errorMessage, failureSummary, retryHint],
    [null, null, null, null],
    'only a job that has ended has an error',
  )
  assert.match(job.lastAttempt.message, /500000 bytes.*API/)
  assert(job.lastAttempt.at >= job.startedAt)
  const entry = await eventually(() => readCut(company))
  assert.deepEqual([entry.actor.email, entry.resource.id], [admin.email, id])
  assert.equal(entry.metadata.reason, 'download_too_large')
  const received = await download(annals, company.companyKey, id)
  assert.equal(received.trailers['x-row-count'], '15')
  const { json: done } = await admin.call('GET', `${EXPORTS}/${id}`)
  assert.deepEqual(
    [done.status, done.lastAttempt, done.sha256],
    ['SUCCEEDED', null, received.sha256],
  )
})

test('limits a compressed download by its uncompressed size, and a filtered one by its content', async () => {
  const { company, admin } = await createLarge()
  const gzip = await openDashboardDownload(annals, admin, await make(admin), {
    'accept-encoding': 'gzip',
  })
  assert.equal(gzip.response.statusCode, 413)
  await storeEvents(annals, company.workspaceKey, [{ category: 'small', action: 'a' }])
  const small = await make(admin, { filters: { category: 'small' } })
  const received = await (await openDashboardDownload(annals, admin, small)).rest()
  assert.equal(received.trailers['x-row-count'], '1')
})

test('a download that cannot be recorded in the audit log does not start and never completes', async () => {
  const company = await annals.createCompany()
  await storeEvents(annals, company.workspaceKey, [{ category: 'c', action: 'a' }])
  const admin = await enroll(annals, company, 'ADMIN')
  const id = await make(admin)
  await refusing(company, 'EXPORT_DOWNLOAD_STARTED', async () => {
    const { response } = await openDashboardDownload(annals, admin, id)
    assert.equal(response.statusCode, 500)
    const body = (await readBytes(response, 1)).toString()
    assert(!body.includes('no audit today'), body)
  })
  const { metadata } = await refusing(company, 'EXPORT_DOWNLOADED', async () => {
    const { response, rest } = await openDashboardDownload(annals, admin, id)
    assert.equal(response.statusCode, 200)
    await assert.rejects(rest)
    // The entry must be stored before the trigger is dropped: an insert fails if its trigger disappears.
    return await eventually(() => readCut(company))
  })
  assert.deepEqual([metadata.rows, metadata.reason], [1, 'interrupted'])
  const { json: open } = await admin.call('GET', `${EXPORTS}/${id}`)
  assert.deepEqual([open.status, open.sha256], ['RUNNING', null])
  const received = await (await openDashboardDownload(annals, admin, id)).rest()
  const entries = await readAudit(annals, company)
  assert.deepEqual(
    entries.map(({ action }) => action),
    [
      'EXPORT_REQUESTED',
      'EXPORT_DOWNLOAD_STARTED',
      'EXPORT_DOWNLOAD_CUT',
      'EXPORT_DOWNLOAD_STARTED',
      'EXPORT_DOWNLOADED',
    ],
  )
  assert.equal(entries.at(-1)?.metadata.sha256, received.sha256)
})

/** Makes the ledger reject this action of this company. */
async function refusing<T>(
  { company }: CreatedCompany,
  action: string,
  work: () => Promise<T>,
): Promise<T> {
  return await asOwner(annals, async (owner) => {
    await sql`
      create function refuse_audit() returns trigger language plpgsql as $$ begin
        if new.action = ${sql.lit(action)} and new.company_id = ${sql.lit(company.id)} then
          raise exception 'no audit today';
        end if;
        return new;
      end $$`.execute(owner)
    await sql`create trigger refuse_audit before insert on event
              for each row execute function refuse_audit()`.execute(owner)
    try {
      return await work()
    } finally {
      await sql`drop function refuse_audit() cascade`.execute(owner)
    }
  })
}

test('a rejected download reveals nothing about storage locations', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const id = await make(admin)
  const objectKey = `${company.workspace.id}/000-secret.parquet`
  await sql`
    update export_job set status = 'FAILED', error_code = 'segment_missing', finished_at = now(),
           failure_summary = ${`The file ${objectKey} is missing.`} where id = ${id}`.execute(db)
  const refused = await admin.call('GET', `${EXPORTS}/${id}/download`)
  assert.deepEqual(refusalOf(refused), [409, 'export_not_downloadable'])
  assert(!refused.text.includes('parquet'), refused.text)
  assert.match(refused.json.error, /Rerun/)
  assert.equal((await admin.call('GET', `${EXPORTS}/${id}`)).json.errorCode, 'segment_missing')
})

test('a link on another site or a sibling subdomain starts no download, nor does HEAD', async () => {
  const company = await annals.createCompany()
  const admin = await enroll(annals, company, 'ADMIN')
  const id = await make(admin)
  for (const site of ['cross-site', 'same-site']) {
    const headers = { 'sec-fetch-site': site }
    for (const route of ['download', 'evidence-pack']) {
      const foreign = await admin.call('GET', `${EXPORTS}/${id}/${route}`, { headers })
      assert.deepEqual(refusalOf(foreign), [403, 'cross_site'])
    }
  }
  for (const route of ['download', 'evidence-pack']) {
    const head = await fetch(`${annals.url}${EXPORTS}/${id}/${route}`, {
      method: 'HEAD',
      headers: { cookie: admin.cookie },
    })
    assert(head.status >= 400)
  }
  assert.equal((await admin.call('GET', `${EXPORTS}/${id}`)).json.status, 'PENDING')
  for (const headers of [{ 'sec-fetch-site': 'none' }, {}]) {
    const url = `${annals.url}${EXPORTS}/${await make(admin)}/download`
    const direct = await fetch(url, { headers: { cookie: admin.cookie, ...headers } })
    assert.equal(direct.status, 200)
    await direct.arrayBuffer()
  }
})

test('cuts a running download if the member is removed or loses the workspace', async () => {
  await using large = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
  const company = await large.createCompany()
  await storeBulk(large, company.workspaceKey, 400)
  const owner = await enroll(large, company, 'OWNER')
  const start = async (member: Member) => {
    const { response } = await openDashboardDownload(large, member, await make(member))
    // The client reads little at a time, so most of the download waits in the service.
    await once(response, 'readable')
    return response
  }
  const removed = await enroll(large, company, 'ANALYST', company.workspace)
  const demoted = await enroll(large, company, 'ANALYST', company.workspace)
  const cut = [await start(removed), await start(demoted)]
  const kept = await start(owner)
  await owner.call('DELETE', `/dashboard/members/${removed.userId}`)
  const body = { role: 'VIEWER' }
  await owner.call('PATCH', `/dashboard/members/${demoted.userId}`, { body })
  const takeSome = () => {
    for (const response of cut) response.read(TAKEN_AT_ONCE)
    assert(cut.every(({ destroyed }) => destroyed))
  }
  await eventually(takeSome, { timeoutMs: 60_000 })
  for (const { complete } of cut) assert.equal(complete, false)
  await eventually(async () => {
    const entries = await readAudit(large, company)
    const reasons = entries.flatMap(({ action, actor, metadata }) =>
      action === 'EXPORT_DOWNLOAD_CUT' ? [`${actor.email} ${metadata.reason}`] : [],
    )
    const expected = [`${removed.email} not_signed_in`, `${demoted.email} insufficient_role`]
    assert.deepEqual(reasons.toSorted(), expected.toSorted())
  })
  kept.resume()
  await once(kept, 'end')
  assert(kept.complete)
})
