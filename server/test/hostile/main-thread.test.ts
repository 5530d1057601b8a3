import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { COMPANY_BOUNDS } from '../../src/tenancy/plans.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { copyRows } from '../harness/database/copy-rows.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { download, makeExport } from '../harness/export/exports.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import {
  BAD_TEXTS,
  BLANKS,
  LONG_STRING,
  MANY_KEYS,
  MANY_NUMBERS,
  type Shape,
  VALID_OBJECTS,
} from '../harness/http/hostile-bodies.ts'
import { HttpThread, type ThreadRequest } from '../harness/http/http-thread.ts'
import { collectGarbage, LoopProbe } from '../harness/timing/loop-probe.ts'
import { CHANGES, type KnownOperation, readOperations } from '../harness/openapi/operations.ts'
import { sendEvents } from '../harness/proof/proof.ts'
import { findOversizedTexts, readRequestSchemas } from '../harness/openapi/route-schemas.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'

/**
 * The guarantee: with a body of up to 256 KiB, no request blocks the main thread for more than 20 ms at
 * a time, and a 4 MB batch for no more than 50 ms. Measured in CPU time of the thread. The best of
 * several tries counts, because garbage collection and compilation only add to it.
 */
const PIECE_MS_MAX = 20
const BATCH_PIECE_MS_MAX = 50
const HEALTH_MS_MAX = 50
/** For any number of pages of 2 MB that a company reads at once. */
const PAGES_PIECE_MS_MAX = 30
const TRIES = 4
const BODY_BYTES = 256 * 1_024
const BATCH_BYTES = 4 * 1_024 * 1_024
/** The quotes of as many keys need escapes. */
const CHECKED_BODY_CHARS = 180_000
/** All shapes on all routes in the long run, otherwise a few per route. */
const IS_LONG = process.env.FAULT_SECONDS !== undefined

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
const client = new HttpThread()
const probe = new LoopProbe()
after(async () => {
  await client[Symbol.asyncDispose]()
  await annals[Symbol.asyncDispose]()
})
const found = await annals.createCompany()
const { cookie } = await signInAs(annals, found, 'OWNER')
const operations = await readOperations()

async function assertShort(
  request: Omit<ThreadRequest, 'url'> & { path: string },
  { about, msMax, statuses }: { about: string; msMax: number; statuses: readonly number[] },
): Promise<void> {
  const triesMs: number[] = []
  // Garbage from building the body must not count as work of the server.
  if ((request.body?.length ?? 0) > BODY_BYTES) collectGarbage()
  for (let tries = 0; tries < TRIES; tries += 1) {
    let status = 0
    let text = ''
    const longestMs = await probe.longestTurnMs(async () => {
      ;({ status, text } = await client.call({ ...request, url: `${annals.url}${request.path}` }))
    })
    // A busy machine can take longer than a read may.
    if (status === 503) continue
    assert(statuses.includes(status), `${about}: ${status} ${text.slice(0, 500)}`)
    triesMs.push(longestMs)
    if (longestMs <= msMax) return
  }
  const listed = triesMs.map((ms) => ms.toFixed(1)).join(', ')
  assert.fail(`${about}: the longest pieces of ${TRIES} tries took ${listed} ms of CPU`)
}

const REFUSED = [400, 403, 404, 413]
const ANY = [200, 400, 401, 403, 404, 415, 431]
/** These routes don't end on their own. */
const IS_STREAM: ReadonlySet<string> = new Set(['followEvents'])

const json = { 'content-type': 'application/json' }
const byWorkspaceKey = { authorization: `Bearer ${found.workspaceKey}` }
const byCompanyKey = { authorization: `Bearer ${found.companyKey}` }

/** The credentials of a caller whose body is read. */
function credentials({ isDashboard, path }: KnownOperation): Record<string, string> {
  if (isDashboard) return { cookie, 'sec-fetch-site': 'same-origin' }
  return path.startsWith('/v1/events') ? byWorkspaceKey : byCompanyKey
}

const eventWith = (metadata: string) => `{"category":"c","action":"a","metadata":${metadata}}`
const ROOM = eventWith('').length

test('stores an event with 256 KiB of any metadata without blocking the main thread', async () => {
  for (const { name, text } of VALID_OBJECTS) {
    const body = Buffer.from(eventWith(text(BODY_BYTES - ROOM)))
    await assertShort(
      { method: 'POST', path: '/v1/events', headers: { ...json, ...byWorkspaceKey }, body },
      { about: name, msMax: PIECE_MS_MAX, statuses: [201] },
    )
  }
})

test('no 256 KiB body blocks the main thread on any route', async () => {
  // Blanks alone are an empty object, which some routes take.
  const full = VALID_OBJECTS.filter(({ name }) => name !== BLANKS)
  const shapes = [...full, ...BAD_TEXTS].map(({ name, text }) => ({
    name,
    body: Buffer.from(text(BODY_BYTES)),
  }))
  let turn = 0
  for (const route of operations.filter(({ method }) => CHANGES.has(method))) {
    const count = IS_LONG ? shapes.length : 1
    for (let nth = 0; nth < count; nth += 1) {
      const shape = shapes[turn % shapes.length]
      turn += 1
      assert(shape)
      await assertShort(
        {
          ...route,
          headers: { ...json, ...credentials(route) },
          body: shape.body,
        },
        { about: `${route.id} with ${shape.name}`, msMax: PIECE_MS_MAX, statuses: REFUSED },
      )
    }
  }
})

test('no body of a webhook blocks the main thread when its signature is checked', async () => {
  const id = await makeWebhook(annals, found, { url: 'https://receiver.example' })
  const path = `/dashboard/webhooks/${id}/check-signature`
  const headers = { ...json, cookie, 'sec-fetch-site': 'same-origin' }
  for (const shape of IS_LONG ? VALID_OBJECTS : [MANY_KEYS, MANY_NUMBERS]) {
    const text = shape.text(CHECKED_BODY_CHARS)
    const body = Buffer.from(JSON.stringify({ body: text, signature: `v1=${'0'.repeat(64)}` }))
    await assertShort(
      { method: 'POST', path, headers, body },
      { about: shape.name, msMax: PIECE_MS_MAX, statuses: [200] },
    )
  }
})

test('no oversized field blocks the main thread', async () => {
  const routes = new Map(operations.map((route) => [`${route.method} ${route.pattern}`, route]))
  let fields = 0
  for (const { route: name, part, schema } of await readRequestSchemas()) {
    const route = routes.get(name)
    if (part !== 'body' || !route) continue
    for (const { field, text } of findOversizedTexts(schema, BODY_BYTES - 1_000)) {
      fields += 1
      // Lists are the expensive ones; a sample of the strings is enough.
      if (!IS_LONG && !text.endsWith(']}') && fields % 4 > 0) continue
      await assertShort(
        { ...route, headers: { ...json, ...credentials(route) }, body: Buffer.from(text) },
        { about: `${route.id} with a large ${field}`, msMax: PIECE_MS_MAX, statuses: REFUSED },
      )
    }
  }
  assert(fields > 50, `only ${fields} fields were found`)
})

test('no query or header of the maximum size blocks the main thread on any route', async () => {
  const pairs = (pair: string) => pair.repeat(Math.floor(14_000 / pair.length))
  const headers: Record<string, Record<string, string>> = {
    cookies: { cookie: pairs('annals_session=x; ') },
    'forwarded addresses': { 'x-forwarded-for': pairs('::1,') },
    'an authorization': { authorization: `Bearer annals_${'a'.repeat(14_000)}` },
    'a traceparent': { traceparent: '0'.repeat(14_000) },
    encodings: { 'accept-encoding': pairs('gzip;q=0.1,') },
    'an origin': { origin: `http://${'a.'.repeat(7_000)}` },
  }
  // Use a company without events, because a page of large events is a large response.
  const empty = await annals.createCompany()
  const { cookie: emptyCookie } = await signInAs(annals, empty, 'OWNER')
  const credentialsOf = ({ isDashboard }: KnownOperation): Record<string, string> =>
    isDashboard ? { cookie: emptyCookie } : { authorization: `Bearer ${empty.companyKey}` }
  const reads = operations.filter(({ method, id }) => method === 'GET' && !IS_STREAM.has(id))
  for (const [nth, route] of reads.entries()) {
    const names = [...route.parameters.slice(0, IS_LONG ? 20 : 1), 'unknown']
    const queries = names.flatMap((name, index) => {
      const both = [pairs(`${name}=x&`), `${name}=${'%41'.repeat(4_600)}`]
      return IS_LONG ? both : both.slice((nth + index) % 2).slice(0, 1)
    })
    for (const query of queries) {
      await assertShort(
        { ...route, path: `${route.path}?${query}`, headers: credentialsOf(route) },
        { about: `${route.id}?${query.slice(0, 20)}`, msMax: PIECE_MS_MAX, statuses: ANY },
      )
    }
    for (const [name, large] of Object.entries(
      IS_LONG || route.id === 'listEvents' ? headers : {},
    )) {
      await assertShort(
        { ...route, headers: { ...credentialsOf(route), ...large } },
        { about: `${route.id} with ${name}`, msMax: PIECE_MS_MAX, statuses: ANY },
      )
    }
  }
})

const batchOf = (items: readonly string[]) => Buffer.from(`{"events":[${items.join(',')}]}`)
const repeat = (count: number, item: string) => Array.from({ length: count }, () => item)
const filled = (shape: Shape, bytes: number) => eventWith(shape.text(bytes))
const ITEM_BYTES = Math.floor(BATCH_BYTES / 500) - ROOM - 2

/** As many events of the largest size as a batch has room for. */
const batchOfLargest = (shape: Shape, bytes = BATCH_BYTES) =>
  batchOf(repeat(Math.floor((bytes - 20) / (BODY_BYTES + 1)), filled(shape, BODY_BYTES - ROOM)))

test('stores a 4 MB batch of few or many events without blocking the main thread', async () => {
  const send = async (about: string, body: Buffer) =>
    await assertShort(
      { method: 'POST', path: '/v1/events/batch', headers: { ...json, ...byWorkspaceKey }, body },
      { about, msMax: BATCH_PIECE_MS_MAX, statuses: [200] },
    )
  for (const shape of IS_LONG ? VALID_OBJECTS : [MANY_KEYS, LONG_STRING]) {
    // Half a million keys take seconds, and what is done per key is the same for a quarter as many.
    const bytes = IS_LONG || shape !== MANY_KEYS ? BATCH_BYTES : BATCH_BYTES / 4
    await send(`large events with ${shape.name}`, batchOfLargest(shape, bytes))
  }
  for (const shape of IS_LONG ? VALID_OBJECTS : [MANY_NUMBERS]) {
    const many = batchOf(repeat(500, filled(shape, ITEM_BYTES)))
    await send(`500 events with ${shape.name}`, many)
  }
})

test('refuses a 4 MB batch without blocking the main thread', async () => {
  const good = filled(MANY_NUMBERS, ITEM_BYTES)
  const unknown = MANY_KEYS.text(ITEM_BYTES).replace('{', '{"category":"c","action":"a",')
  const keys = MANY_KEYS.text(BATCH_BYTES - ROOM - 20)
  const bodies: Record<string, Buffer> = {
    'two million items': batchOf(repeat(BATCH_BYTES / 2 - 10, '0')),
    'half a million fields beside the items': Buffer.from(keys),
    'unknown fields in every item': batchOf(repeat(499, unknown)),
    'a fault behind all items': batchOf([...repeat(499, good), 'oops']),
    'one event of 4 MB': batchOf([eventWith(keys)]),
    'whitespace around one event': batchOf([' '.repeat(BATCH_BYTES - 1_000) + eventWith('{}')]),
    'no UTF-8 at the end': Buffer.concat([batchOf(repeat(499, good)), Buffer.from([0xff])]),
    ...Object.fromEntries(
      (IS_LONG ? BAD_TEXTS : []).map(({ name, text }) => [
        `${name}, in one item`,
        batchOf([eventWith(text(BODY_BYTES - ROOM))]),
      ]),
    ),
  }
  for (const [about, body] of Object.entries(bodies)) {
    await assertShort(
      { method: 'POST', path: '/v1/events/batch', headers: { ...json, ...byWorkspaceKey }, body },
      { about, msMax: BATCH_PIECE_MS_MAX, statuses: [200, 400] },
    )
  }
})

test('ten large bodies at once share the main thread in slices', async () => {
  const body = Buffer.from(filled(MANY_KEYS, BODY_BYTES - ROOM))
  const headers = { ...json, ...byWorkspaceKey }
  const send = () => client.call({ url: `${annals.url}/v1/events`, method: 'POST', headers, body })
  const triesMs: number[] = []
  for (
    let tries = 0;
    tries < TRIES && !triesMs.some((ms) => ms <= BATCH_PIECE_MS_MAX);
    tries += 1
  ) {
    const work = async () => {
      const responses = await Promise.all(Array.from({ length: 10 }, send))
      assert(responses.every(({ status }) => status === 201))
    }
    triesMs.push(await probe.longestTurnMs(work))
  }
  assert(Math.min(...triesMs) <= BATCH_PIECE_MS_MAX, triesMs.join())
})

test('twenty reads of large pages at once share the main thread in slices', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const headers = { authorization: `Bearer ${key}` }
  // Not in Latin-1, which takes longer to decode and to send.
  const metadata = { text: '…'.repeat(3_400) }
  const events = Array.from({ length: 200 }, () => ({ category: 'c', action: 'a', metadata }))
  const stored = await annals.call('POST', '/v1/events/batch', { key, body: { events } })
  assert.equal(stored.status, 200, stored.text)
  const url = `${annals.url}/v1/events?limit=200`
  const read = () => client.call({ url, method: 'GET', headers, dropsText: true })
  const triesMs: number[] = []
  for (let tries = 0; tries < TRIES; tries += 1) {
    const work = async () => {
      const responses = await Promise.all(Array.from({ length: 20 }, read))
      assert(responses.every(({ status }) => status === 200))
    }
    triesMs.push(await probe.longestTurnMs(work))
    if (triesMs.some((ms) => ms <= PAGES_PIECE_MS_MAX)) return
  }
  assert.fail(`the longest pieces of ${TRIES} tries took ${triesMs.join()} ms of CPU`)
})

test('the largest lists of saved filters are sent in slices', async () => {
  const owner = await signInAs(annals, found, 'OWNER')
  const { workspace, company } = found
  const not = Array.from({ length: 8 }, (_, nth) => `actorId:${nth}${'x'.repeat(480)}`)
  const view = { name: 'v', workspaceId: null, visibility: 'PRIVATE', query: { not } }
  const template = { name: 't', body: { source: 'HOT', format: 'CSV', filters: { not } } }
  const webhook = {
    url: 'https://receiver.example/',
    filter: { actorIds: not.map((text) => text.slice(8, 250)) },
  }
  const body = { ...webhook, workspaceId: workspace.id }
  const first = [
    await owner.call('POST', '/dashboard/explorer/views', { body: view }),
    await owner.call('POST', '/dashboard/export-templates', { body: template }),
    await owner.call('POST', '/dashboard/webhooks', { body }),
  ]
  for (const { status, text } of first) assert.equal(status, 201, text)
  const copies = {
    explorer_view: COMPANY_BOUNDS.viewsMax,
    export_template: COMPANY_BOUNDS.exportTemplatesMax,
    webhook: COMPANY_BOUNDS.webhooksPerWorkspaceMax,
  }
  for (const [table, count] of Object.entries(copies)) {
    await copyRows(annals.database.connection, {
      table,
      changes: `jsonb_build_object('id', gen_random_uuid())`,
      from: `${table} as t, generate_series(2, ${count}) where company_id = '${company.id}'`,
    })
  }
  const headers = { cookie: owner.cookie }
  for (const [path, bytesMin] of [
    ['/dashboard/explorer/views', 1_900_000],
    ['/dashboard/export-templates', 700_000],
    ['/dashboard/webhooks', 100_000],
  ] as const) {
    const response = await annals.call('GET', path, { headers })
    assert(response.text.length > bytesMin, `${path}: ${response.text.length}`)
    await assertShort(
      { method: 'GET', path, headers },
      { about: path, msMax: PIECE_MS_MAX, statuses: [200] },
    )
  }
})

// Measures wall time and needs an idle machine, so it runs only with `npm run fault`. The tests above
// check the same guarantee in CPU time.
if (IS_LONG) {
  test('the health check responds within 50 ms under hostile load', async () => {
    const batch = batchOfLargest(MANY_KEYS)
    const headers = { ...json, ...byWorkspaceKey }
    const url = `${annals.url}/v1/events/batch`
    const over = new AbortController()
    const hostile = Array.from({ length: 4 }, async () => {
      while (!over.signal.aborted) await client.call({ url, method: 'POST', headers, body: batch })
    })
    await using calm = new HttpThread()
    const timesMs: number[] = []
    await repeatFault(async () => {
      const { status, ms } = await calm.call({ url: `${annals.url}/health`, method: 'GET' })
      assert.equal(status, 200)
      timesMs.push(ms)
    })
    over.abort()
    await Promise.all(hostile)
    const p99Ms = timesMs.toSorted((a, b) => a - b)[Math.floor(timesMs.length * 0.99)] ?? 0
    assert(p99Ms <= HEALTH_MS_MAX, `${timesMs.length} responses, p99 ${p99Ms} ms`)
  })
}

test('builds the manifest of an export of every workspace in slices', async () => {
  const others = Array.from({ length: COMPANY_BOUNDS.workspacesMax - 1 }, (_, nth) => `W ${nth}`)
  const { companyKey, workspaces } = await annals.createCompany({ workspaces: ['W', ...others] })
  for (const { workspaceKey } of workspaces) await sendEvents(annals, workspaceKey, 100)
  const jobId = await makeExport(annals, companyKey, { evidence: 'COMPLETE' })
  await download(annals, companyKey, jobId)
  const path = `/v1/exports/${jobId}/manifest`
  await eventually(async () => {
    const { status, json } = await annals.call('GET', path, { key: companyKey })
    assert.equal(status, 200)
    assert.equal(json.workspaces.length, workspaces.length)
  })
  await assertShort(
    { method: 'GET', path, headers: { authorization: `Bearer ${companyKey}` } },
    { about: path, msMax: PIECE_MS_MAX, statuses: [200] },
  )
})
