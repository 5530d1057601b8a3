import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import * as fc from 'fast-check'
import { advanceSearchBlocks } from '../../src/ledger/search/search-blocks.ts'
import { archiveAll, listFiles } from '../harness/archive/archive.ts'
import { type Member, signInAs } from '../harness/dashboard/dashboard.ts'
import { type Parameters, search, sendEvents, walkExplorer } from '../harness/dashboard/explorer.ts'
import { query } from '../harness/database/engine.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const DAY_MS = 86_400_000

const searchArchive = (member: Member, parameters: Parameters = {}) =>
  member.call('GET', `/dashboard/events/archived${search(parameters)}`)

type Walk = { ids: string[]; pages: TestResponse['json'][] }

async function walkArchive(member: Member, parameters: Parameters = {}): Promise<Walk> {
  const pages: TestResponse['json'][] = []
  let cursor: string | null = null
  do {
    const { status, json, text } = await searchArchive(member, {
      limit: '10',
      ...parameters,
      ...(cursor !== null && { cursor }),
    })
    assert.equal(status, 200, text)
    pages.push(json)
    cursor = json.nextCursor
  } while (cursor !== null)
  return { ids: pages.flatMap(({ data }) => data.map(({ id }: { id: string }) => id)), pages }
}

const event = (nth: number) => ({
  category: nth % 2 === 0 ? 'auth' : 'billing',
  action: `a${nth % 3}`,
  actor: { id: `u${nth % 5}`, role: nth % 4 === 0 ? 'admin' : 'member' },
  metadata: { ip: `192.0.2.${nth % 7}`, request: { id: `req_${nth}` } },
})
const events = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => event(from + index))

/** A company with three segments of 20 events each. */
async function archivedCompany() {
  const company = await annals.createCompany({ plan: 'STARTER', workspaces: ['A', 'B'] })
  const ids: string[] = []
  for (const from of [0, 20, 40]) {
    ids.push(...(await sendEvents(annals, company.workspaceKey, events(from, 20))))
    await archiveAll(annals)
  }
  const member = await signInAs(annals, company, 'OWNER')
  return { company, workspaceId: company.workspace.id, ids, member }
}

test('finds every archived event, the last ones first, with each filter', async () => {
  const { ids, member } = await archivedCompany()
  assert.deepEqual(await walkExplorer(member), [])
  const expected = (isMatch: (nth: number) => boolean) =>
    ids.filter((_, nth) => isMatch(nth)).toReversed()
  const cases: [Parameters, (nth: number) => boolean][] = [
    [{}, () => true],
    [{ 'metadata.request.id': 'req_17' }, (nth) => nth === 17],
    [{ hasMetadata: 'request' }, () => true],
    [{ text: 'REQ_41' }, (nth) => nth === 41],
    [{ actorRole: 'admin', 'metadata.ip': '192.0.2.1' }, (nth) => nth % 4 === 0 && nth % 7 === 1],
    [{ category: 'auth', not: 'action:a0' }, (nth) => nth % 2 === 0 && nth % 3 !== 0],
    [{ actorId: 'u3' }, (nth) => nth % 5 === 3],
    [{ text: 'nothing has this' }, () => false],
  ]
  for (const [parameters, isMatch] of cases) {
    const { ids: found } = await walkArchive(member, parameters)
    assert.deepEqual(found, expected(isMatch), JSON.stringify(parameters))
  }
})

test('reports progress until all segments of the period are searched', async () => {
  const { member } = await archivedCompany()
  const { pages } = await walkArchive(member)
  assert(pages.length >= 6)
  let searched = 0
  for (const { progress } of pages) {
    assert.equal(progress.segments, 3)
    assert(progress.segmentsSearched >= searched)
    assert(progress.bytesSearched <= progress.bytes)
    searched = progress.segmentsSearched
  }
  const last = pages.at(-1)?.progress
  assert.deepEqual([last.segmentsSearched, last.bytesSearched], [3, last.bytes])
  const { pages: none } = await walkArchive(member, { to: '2020-01-01T00:00:00Z' })
  assert.deepEqual(none.at(-1)?.progress.segments, 0)
})

test('does not read the files that search blocks rule out', async () => {
  const { ids, member, workspaceId } = await archivedCompany()
  const files = listFiles(annals, workspaceId)
  assert.equal(files.length, 3)
  const root = new URL(annals.archiveUrl).pathname
  // The first events are in the first file.
  for (const file of files.slice(1)) renameSync(join(root, file), join(root, `${file}.away`))
  const { ids: found } = await walkArchive(member, { 'metadata.request.id': 'req_3' })
  assert.deepEqual(found, [ids[3]])
  const { status, json } = await searchArchive(member, { 'metadata.request.id': 'req_50' })
  assert.deepEqual([status, json.code], [503, 'unavailable'])
  // What was found before the problem is returned first.
  const first = await searchArchive(member, { text: 'u1' })
  assert.equal(first.status, 503)
  for (const file of files) {
    if (file !== files[0]) renameSync(join(root, `${file}.away`), join(root, file))
  }
  renameSync(join(root, files[0] ?? ''), join(root, `${files[0]}.away`))
  const page = await searchArchive(member, { text: 'u1', limit: '200' })
  assert.deepEqual([page.status, page.json.data.length], [200, 8])
  const next = await searchArchive(member, {
    text: 'u1',
    limit: '200',
    cursor: page.json.nextCursor,
  })
  assert.deepEqual([next.status, next.json.code], [503, 'unavailable'])
})

test('searches events that are no longer hot although they are still in the table', async () => {
  let aheadMs = -31 * 86_400_000
  await using past = await startTestApp({
    role: 'api',
    clock: () => Date.now() + aheadMs,
    monotonic: () => performance.now(),
  })
  const company = await past.createCompany({ plan: 'STARTER', workspaces: ['A', 'B'] })
  const sent = new Set<string>()
  for (const { workspaceKey } of company.workspaces) {
    for (const id of await sendEvents(past, workspaceKey, events(0, 30))) sent.add(id)
  }
  aheadMs = 0
  await sendEvents(past, company.workspaceKey, events(30, 5))
  const member = await signInAs(past, company, 'OWNER')
  assert.equal((await walkExplorer(member)).length, 5)
  const { ids } = await walkArchive(member)
  assert.equal(ids.length, sent.size)
  assert(ids.every((id) => sent.has(id)))
  assert.equal((await walkArchive(member, { 'metadata.request.id': 'req_3' })).ids.length, 2)
})

test('requires a plan with exports', async () => {
  const company = await annals.createCompany({ plan: 'FREE' })
  const member = await signInAs(annals, company, 'OWNER')
  const { status, json } = await searchArchive(member)
  assert.deepEqual([status, json.code], [403, 'plan_required'])
})

test('shows a member only the workspaces they can see, and cursors of no other member', async () => {
  const { company, workspaceId, ids, member } = await archivedCompany()
  const other = await archivedCompany()
  const second = company.workspaces[1]?.id
  assert(second)
  const outsider = await signInAs(annals, company, 'VIEWER', [second])
  assert.deepEqual((await walkArchive(outsider)).ids, [])
  const viewer = await signInAs(annals, company, 'VIEWER', [workspaceId])
  assert.deepEqual((await walkArchive(viewer)).ids, ids.toReversed())
  for (const hidden of [workspaceId, other.workspaceId]) {
    assert.equal((await searchArchive(outsider, { workspaceId: hidden })).status, 404)
  }
  const { nextCursor: cursor } = (await searchArchive(member, { limit: '10' })).json
  for (const [caller, parameters] of [
    [viewer, { cursor }],
    [other.member, { cursor }],
    [member, { cursor, category: 'auth' }],
  ] as const) {
    const { status, json } = await searchArchive(caller, parameters)
    assert.deepEqual([status, json.code], [400, 'invalid_cursor'])
  }
  // Losing access ends a search that has started.
  const begun = (await searchArchive(viewer, { limit: '10' })).json.nextCursor
  await query(
    annals.database.connection,
    `delete from user_workspace where user_id = '${viewer.userId}'`,
  )
  const { json } = await searchArchive(viewer, { limit: '10', cursor: begun })
  assert.deepEqual(json.data, [])
})

test('finds every event while events arrive, are put into blocks and are archived', async () => {
  const step = fc.constantFrom('send', 'block', 'archive', 'search')
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 6 }), async (steps) => {
      const company = await annals.createCompany({ plan: 'STARTER' })
      const member = await signInAs(annals, company, 'OWNER')
      const sent: string[] = []
      const send = async () => {
        const more = events(sent.length, 15)
        sent.push(...(await sendEvents(annals, company.workspaceKey, more)))
      }
      const assertFound = async () => {
        const cases: [Parameters, (nth: number) => boolean][] = [
          [{ 'metadata.ip': '192.0.2.3' }, (nth) => nth % 7 === 3],
          [{ text: 'req_4' }, (nth) => nth === 4],
          [{}, () => true],
        ]
        for (const [parameters, isMatch] of cases) {
          const expected = sent.filter((_, nth) => isMatch(nth))
          const hot = (await walkExplorer(member, parameters)).map(({ id }) => id)
          // Events are archived after the list of hot events was read, and while the archive is searched.
          const [{ ids: archived }] = await Promise.all([
            walkArchive(member, parameters),
            archiveAll(annals),
          ])
          const found = new Set([...hot, ...archived])
          assert.deepEqual(
            expected.filter((id) => !found.has(id)),
            [],
          )
          assert(found.size === expected.length)
        }
      }
      await send()
      for (const name of steps) {
        if (name === 'send') await send()
        if (name === 'block') {
          await advanceSearchBlocks(db, company.workspace.id, { isPartial: true, blockEvents: 8 })
        }
        if (name === 'archive') await archiveAll(annals)
        if (name === 'search') await assertFound()
      }
      await assertFound()
      // All of them are archived now.
      await assertFound()
    }),
    { numRuns: rounds(1, 3) },
  )
})

test('the header of a list says since when it is complete, also after archiving hot events', async () => {
  const company = await annals.createCompany({ plan: 'PRO', workspaces: ['A', 'B'] })
  const [first, second] = company.workspaces
  assert(first && second)
  const member = await signInAs(annals, company, 'OWNER')
  await sendEvents(annals, second.workspaceKey, events(0, 2))
  await sendEvents(annals, first.workspaceKey, events(0, 3))
  const read = async (key: string) => {
    const { headers, json } = await annals.call('GET', '/v1/events', { key })
    return { sinceMs: Date.parse(headers.get('x-hot-since') ?? ''), events: json.data }
  }
  const before = await read(company.companyKey)
  assert.equal(before.events.length, 5)
  assert(before.sinceMs < Date.now() - 89 * DAY_MS)
  const lastMs = Math.max(
    ...before.events.map((one: { receivedAt: string }) => Date.parse(one.receivedAt)),
  )
  await archiveAll(annals)
  await sendEvents(annals, first.workspaceKey, events(3, 1))
  for (const key of [company.companyKey, first.workspaceKey]) {
    const { sinceMs, events: left } = await read(key)
    assert.equal(left.length, 1)
    assert(
      sinceMs > lastMs && sinceMs <= Date.parse(left[0].receivedAt),
      new Date(sinceMs).toISOString(),
    )
  }
  const { headers, json } = await member.call('GET', '/dashboard/events')
  assert.equal(headers.get('x-hot-since'), json.completeSince)
  assert.equal(Date.parse(json.completeSince), (await read(company.companyKey)).sinceMs)
})

test('finds archived events by the time of their receipt', async () => {
  const { ids, member } = await archivedCompany()
  const { pages } = await walkArchive(member)
  const received = new Map<string, string>(
    pages.flatMap(({ data }) =>
      data.map((one: { id: string; receivedAt: string }) => [one.id, one.receivedAt]),
    ),
  )
  const receivedFrom = received.get(ids[20] ?? '') ?? ''
  const receivedTo = received.get(ids[40] ?? '') ?? ''
  assert(receivedFrom < receivedTo)
  const { ids: found, pages: searched } = await walkArchive(member, { receivedFrom, receivedTo })
  const wanted = ids.filter((id) => {
    const at = received.get(id) ?? ''
    return at >= receivedFrom && at < receivedTo
  })
  assert.deepEqual(found, wanted.toReversed())
  // A file whose events were all received at other times is not read.
  assert(searched.at(-1)?.progress.segments < 3)
})
