import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { canonicalJson } from '../../src/ledger/canonical.ts'
import { recomputeHash, verifyLink } from '../../src/ledger/chain.ts'
import { EMPTY_HEAD, headAfter, type SealedEvent } from '../../src/ledger/event.ts'
import { assertId, newId } from '../../src/platform/id.ts'
import { insertProject } from '../../src/tenancy/workspace/workspace-store.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { guardedCell } from '../harness/export/csv-guard.ts'
import { query } from '../harness/database/engine.ts'
import {
  download,
  exportRows,
  makeExport,
  parseCsv,
  parseJsonl,
  readJob,
  storeEvents,
} from '../harness/export/exports.ts'
import { walkEvents } from '../harness/event/ledger.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const { clock, advance } = manualClock()
const annals = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

type Row = TestResponse['json']

/** A row as the ledger stores it, with the parts as canonical text. */
function toSealed(row: Row): SealedEvent {
  const part = (value: unknown) => (value === null ? null : canonicalJson(value))
  return {
    id: assertId(row.id),
    seq: row.seq,
    companyId: assertId(row.companyId),
    workspaceId: assertId(row.workspaceId),
    projectId: row.projectId === null ? null : assertId(row.projectId),
    timestampMs: Date.parse(row.timestamp),
    receivedAtMs: Date.parse(row.receivedAt),
    category: row.category,
    action: row.action,
    traceId: row.traceId,
    actor: part(row.actor),
    resource: part(row.resource),
    metadata: part(row.metadata),
    hash: row.hash,
    prevHash: row.prevHash,
    sealed: canonicalJson(row.sealed),
    salts: canonicalJson(row.salts),
  }
}

/** Texts that could break a format. */
const HARD_TEXTS = [
  'plain',
  '=HYPERLINK("http://x")',
  '+1',
  '-1',
  '@sum',
  '\ttab',
  '\rreturn',
  '\nline',
  "'quote",
  'a,b',
  'a "quoted" word',
  'two\r\nlines',
  'back\\slash \\n \\N \\.',
  'Ünïcode 🎈 \u2028 \u{10FFFF} \u0001 \u007f',
  '\ufeffmark',
  ' ',
  'a;=1+1',
  'a;\t -1',
  '\u200b@sum',
  '＝1',
]

async function createHard() {
  const tenant = await annals.createCompany()
  const events = HARD_TEXTS.map((text, index) => ({
    category: text,
    action: `${text} `,
    ...(index % 2 === 0 && { projectId: tenant.project.id }),
    ...(index % 3 !== 0 && { actor: { id: text, email: 'a@example.com', role: text } }),
    ...(index % 4 !== 0 && { resource: { type: text, id: text } }),
    ...(index % 5 !== 0 && { metadata: { [text]: text, list: [1, 1.5, null, { deep: text }] } }),
  }))
  await storeEvents(annals, tenant.workspaceKey, events)
  return { ...tenant, events }
}

test('rows are the records of the query, with everything needed to recompute their hashes and links', async () => {
  const { workspaceKey: key } = await createHard()
  const rows = await exportRows(annals, key)
  assert.equal(rows.length, HARD_TEXTS.length)
  let head = EMPTY_HEAD
  for (const row of rows) {
    const event = toSealed(row)
    assert.deepEqual(recomputeHash(event), { ok: true, hash: row.hash })
    assert.deepEqual(verifyLink(head, event), { ok: true })
    head = headAfter(event)
  }
  const records = rows.map(({ sealed: _sealed, salts: _salts, ...record }) => record)
  const shown = await walkEvents(annals, key)
  assert.deepEqual(
    records.toSorted((a, b) => a.seq - b.seq),
    shown.toSorted((a, b) => a.seq - b.seq),
  )
})

test('a CSV export has the same events, without anything that a spreadsheet treats as a formula', async () => {
  const { workspaceKey: key } = await createHard()
  const rows = await exportRows(annals, key)
  const jobId = await makeExport(annals, key, { format: 'CSV' })
  const { text, headers } = await download(annals, key, jobId)
  assert.equal(headers['content-type'], 'text/csv; charset=utf-8')
  const [names, ...cells] = parseCsv(text)
  assert.equal(
    names?.join(),
    'id,seq,timestamp,receivedAt,companyId,workspaceId,projectId,category,action,actorId,actorEmail,actorRole,resourceType,resourceId,metadata,traceId,hash,prevHash',
  )
  const guarded = (value: string | undefined) => guardedCell(value ?? '')
  const expected = rows.map((row) => [
    row.id,
    String(row.seq),
    row.timestamp,
    row.receivedAt,
    row.companyId,
    row.workspaceId,
    row.projectId ?? '',
    guarded(row.category),
    guarded(row.action),
    guarded(row.actor?.id),
    guarded(row.actor?.email),
    guarded(row.actor?.role),
    guarded(row.resource?.type),
    guarded(row.resource?.id),
    row.metadata === null ? '' : guarded(canonicalJson(row.metadata)),
    row.traceId,
    row.hash,
    row.prevHash,
  ])
  assert.deepEqual(cells, expected)
})

test('the headers, the trailers and the job describe a download', async () => {
  const { workspaceKey: key } = await createHard()
  const filters = { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
  const jobId = await makeExport(annals, key, { name: 'Sätze', filters })
  const { body, headers, trailers, sha256 } = await download(annals, key, jobId)
  assert.equal(headers['content-type'], 'application/x-ndjson')
  assert.equal(
    headers['content-disposition'],
    `attachment; filename="acme-production-satze-2020-01-01--2100-01-01.jsonl"; filename*=UTF-8''acme-production-s%C3%A4tze-2020-01-01--2100-01-01.jsonl`,
  )
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal(headers['content-encoding'], undefined)
  assert.equal(headers.vary, 'accept-encoding')
  assert.equal(headers.trailer, 'x-row-count, x-content-sha256')
  const rows = String(HARD_TEXTS.length)
  assert.deepEqual({ ...trailers }, { 'x-row-count': rows, 'x-content-sha256': sha256 })
  const job = await readJob(annals, key, jobId)
  assert.deepEqual(
    [job.status, job.rowsExported, job.truncated, job.sha256, job.bytes],
    ['SUCCEEDED', rows, false, sha256, String(body.length)],
  )
})

test('gzip contains the same bytes, and the trailers describe them', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const events = Array.from({ length: 1_500 }, (_, index) => ({
    category: 'c',
    action: `${index}`,
  }))
  await storeEvents(annals, key, events)
  const first = await makeExport(annals, key)
  const { json } = await annals.call('POST', `/v1/exports/${first}/rerun`, { key })
  const plain = await download(annals, key, first, { 'accept-encoding': 'identity' })
  const zipped = await download(annals, key, json.jobId, { 'accept-encoding': 'gzip' })
  assert.equal(zipped.headers['content-encoding'], 'gzip')
  assert(zipped.body.length < plain.body.length / 2)
  assert(gunzipSync(zipped.body).equals(plain.body))
  assert.deepEqual({ ...zipped.trailers }, { ...plain.trailers })
})

test('an export without rows has an empty file, or only a CSV header', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  for (const [format, text] of [
    ['JSONL', /^$/],
    ['CSV', /^id,[^\n]*prevHash\r\n$/],
  ] as const) {
    for (const encoding of ['identity', 'gzip']) {
      const jobId = await makeExport(annals, key, { format })
      const received = await download(annals, key, jobId, { 'accept-encoding': encoding })
      const body = encoding === 'gzip' ? gunzipSync(received.body) : received.body
      assert.match(body.toString(), text)
      assert.equal(received.trailers['x-row-count'], '0')
      const sha256 = createHash('sha256').update(body).digest('hex')
      assert.equal(received.trailers['x-content-sha256'], sha256)
      assert.equal((await readJob(annals, key, jobId)).status, 'SUCCEEDED')
    }
  }
})

test('events after the creation of a job are not in it, and a rerun has the same bytes', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await storeEvents(annals, key, [{ category: 'c', action: 'before' }])
  const jobId = await makeExport(annals, key)
  await storeEvents(annals, key, [{ category: 'c', action: 'after' }])
  const { text, sha256 } = await download(annals, key, jobId)
  assert.deepEqual(
    parseJsonl(text).map(({ action }) => action),
    ['before'],
  )
  advance(3 * DAY_MS)
  const { status, json } = await annals.call('POST', `/v1/exports/${jobId}/rerun`, { key })
  assert.equal(status, 201)
  const again = await download(annals, key, json.jobId)
  assert.equal(again.sha256, sha256)
  assert.equal((await readJob(annals, key, json.jobId)).rerunOf, jobId)
  assert.equal((await exportRows(annals, key)).length, 2)
})

test('each filter returns what it returns in a query, alone and combined', async () => {
  const { company, workspace, workspaceKey: key, project } = await annals.createCompany()
  const other = newId<'project'>()
  const names = { companyId: company.id, workspaceId: workspace.id, name: 'Other' }
  await annals.app.database.db
    .transaction()
    .execute((tx) => insertProject(tx, { id: other, ...names }))
  const startMs = clock() - 1_000
  const timeOf = (index: number) => new Date(startMs + (index % 10)).toISOString()
  const pick = (values: readonly string[], index: number) => values[index % values.length] ?? ''
  const eventOf = (index: number) => ({
    category: pick(['billing', 'Ünïcode 🎈'], index),
    action: pick(['create', 'delete', "'; drop table event; --", 'back\\slash'], index),
    projectId: pick([project.id, other], Math.floor(index / 2)),
    timestamp: timeOf(index),
    actor: { id: pick(['ada', 'grace', ''], index), email: `${index % 2}@example.com` },
    resource: { type: pick(['invoice', 'user'], Math.floor(index / 3)), id: String(index % 4) },
  })
  const length = 240
  await storeEvents(
    annals,
    key,
    Array.from({ length }, (_, index) => eventOf(index)),
  )
  const filters: Record<string, string>[] = [
    {},
    { category: 'Ünïcode 🎈' },
    { action: "'; drop table event; --" },
    { action: 'back\\slash' },
    { projectId: other },
    { projectId: newId() },
    { actorId: 'ada' },
    { actorId: '' },
    { actorEmail: '1@example.com' },
    { resourceType: 'user' },
    { resourceId: '3' },
    { from: timeOf(4) },
    { to: timeOf(4) },
    { from: timeOf(2), to: timeOf(7) },
    { from: '0000-01-01T00:00:00Z', to: '9999-12-31T23:59:59.999Z' },
    { to: '0000-01-01T00:00:00Z' },
    { from: '9999-12-31T23:59:59.999Z' },
    {
      from: timeOf(1),
      to: timeOf(9),
      category: 'billing',
      action: 'create',
      projectId: project.id,
      actorId: 'ada',
      actorEmail: '0@example.com',
      resourceType: 'invoice',
      resourceId: '0',
    },
  ]
  for (const filter of filters) {
    const shown = await walkEvents(annals, key, filter)
    const seqs = shown.map(({ seq }) => Number(seq)).toSorted((a, b) => a - b)
    const rows = await exportRows(annals, key, { filters: filter })
    assert.deepEqual(
      rows.map(({ seq }) => seq),
      seqs,
      JSON.stringify(filter),
    )
    const body = { source: 'HOT', format: 'JSONL', filters: filter }
    const { json } = await annals.call('POST', '/v1/exports/preflight', { key, body })
    assert.deepEqual([json.rows, json.isEstimate], [String(seqs.length), false])
  }
})

test('a limit truncates the export, and the job says whether it did', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const events = Array.from({ length: 250 }, (_, index) => ({
    category: index % 2 === 0 ? 'even' : 'odd',
    action: `${index}`,
  }))
  await storeEvents(annals, key, events)
  for (const [limit, filters, rows, isCut] of [
    [1, {}, 1, true],
    [200, {}, 200, true],
    [249, {}, 249, true],
    [250, {}, 250, false],
    [251, {}, 250, false],
    [Number.MAX_SAFE_INTEGER, {}, 250, false],
    [124, { category: 'odd' }, 124, true],
    [125, { category: 'odd' }, 125, false],
  ] as const) {
    const jobId = await makeExport(annals, key, { limit, filters })
    const { text, trailers } = await download(annals, key, jobId)
    assert.equal(parseJsonl(text).length, rows)
    assert.equal(trailers['x-row-count'], String(rows))
    const job = await readJob(annals, key, jobId)
    assert.deepEqual([job.truncated, job.rowLimit], [isCut, String(Math.min(limit, 10_000_000))])
    const body = { source: 'HOT', format: 'JSONL', filters, limit }
    const { json } = await annals.call('POST', '/v1/exports/preflight', { key, body })
    assert.deepEqual([json.rows, json.isCut, json.isEstimate], [String(rows), isCut, false])
    const bytes = Buffer.byteLength(text)
    assert(Math.abs(Number(json.estimatedBytes) - bytes) < bytes / 10, json.estimatedBytes)
  }
})

const ROWS_MAX = { STARTER: 50_000, PRO: 1_000_000, ENTERPRISE: 10_000_000 } as const

for (const plan of ['STARTER', 'PRO', 'ENTERPRISE'] as const) {
  test(`a ${plan} company exports at most ${ROWS_MAX[plan]} rows, whatever it requests`, async () => {
    const { workspaceKey: key } = await annals.createCompany({ plan })
    for (const [limit, rowLimit] of [
      [{}, ROWS_MAX[plan]],
      [{ limit: ROWS_MAX[plan] + 1 }, ROWS_MAX[plan]],
      [{ limit: 7 }, 7],
    ] as const) {
      const job = await readJob(annals, key, await makeExport(annals, key, limit))
      assert.equal(job.rowLimit, String(rowLimit))
    }
  })
}

test('a rerun has at most the rows that the plan now allows, and none without exports', async () => {
  const { company, workspaceKey: key } = await annals.createCompany({ plan: 'PRO' })
  const jobId = await makeExport(annals, key)
  const setPlan = async (plan: string) => {
    await query(
      annals.database.connection,
      `update company set plan = '${plan}' where id = '${company.id}'`,
    )
    // A key is read again after two seconds.
    advance(3_000)
  }
  await setPlan('STARTER')
  const { json } = await annals.call('POST', `/v1/exports/${jobId}/rerun`, { key })
  assert.equal((await readJob(annals, key, json.jobId)).rowLimit, '50000')
  await setPlan('FREE')
  const refused = await annals.call('POST', `/v1/exports/${jobId}/rerun`, { key })
  assert.deepEqual([refused.status, refused.json.code], [403, 'plan_required'])
  const download = await annals.call('GET', `/v1/exports/${jobId}/download`, { key })
  assert.deepEqual([download.status, download.json.code], [403, 'plan_required'])
})

test('a company export lists workspaces one by one, each in the order of its chain', async () => {
  const tenant = await annals.createCompany({ workspaces: ['One', 'Two', 'Three'] })
  for (const round of ['first', 'second']) {
    for (const { workspaceKey } of tenant.workspaces.toReversed()) {
      await storeEvents(annals, workspaceKey, [{ category: 'c', action: round }])
    }
  }
  const rows = await exportRows(annals, tenant.companyKey)
  const ids = tenant.workspaces.map(({ id }) => String(id)).toSorted()
  assert.deepEqual(
    rows.map(({ workspaceId, seq }) => [workspaceId, seq]),
    ids.flatMap((id) => [
      [id, 1],
      [id, 2],
    ]),
  )
  const [first] = tenant.workspaces
  const one = { filters: { workspaceId: first?.id ?? '' } }
  assert.equal((await exportRows(annals, tenant.companyKey, one)).length, 2)
})

test('the system workspace is exported only if it is named', async () => {
  const { company, companyKey: key } = await annals.createCompany()
  const [system] = await query(
    annals.database.connection,
    `select id from workspace where company_id = '${company.id}' and kind = 'SYSTEM'`,
  )
  const filters = { workspaceId: String(system?.['id']) }
  const jobId = await makeExport(annals, key, { filters })
  assert.equal((await download(annals, key, jobId)).status, 200)
  assert.deepEqual((await readJob(annals, key, jobId)).filters, filters)
  const rowsInWorkspaces = await exportRows(annals, key)
  assert(rowsInWorkspaces.every(({ workspaceId }) => workspaceId !== system?.['id']))
})

test('hot events are those within the hot time of the plan', async () => {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'STARTER' })
  await storeEvents(annals, key, [{ category: 'c', action: 'old' }])
  advance(31 * DAY_MS)
  await storeEvents(annals, key, [{ category: 'c', action: 'new' }])
  const actions = async (source: string) => {
    const filters = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
    const rows = await exportRows(annals, key, { source, filters })
    return rows.map(({ action }) => action)
  }
  assert.deepEqual(await actions('HOT'), ['new'])
  assert.deepEqual(await actions('ARCHIVED'), ['old'])
  assert.deepEqual(await actions('HOT_AND_ARCHIVED'), ['old', 'new'])
})
