import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as fc from 'fast-check'
import { advanceSearchBlocks } from '../../src/ledger/search/search-blocks.ts'
import { startSearchBlockWorker } from '../../src/outlet/search/search-block-worker.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database, isOutage } from '../../src/platform/pg/database.ts'
import { anyText } from '../harness/event/any-event.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
import { removeUpTo, sendEvents } from '../harness/dashboard/explorer.ts'
import { buildSearchBlocks, nodesOf, walkEvents } from '../harness/event/metadata-search.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const { connection } = annals.database
const logger = createLogger('silent')

async function newWorkspace() {
  const { workspace, workspaceKey: key } = await annals.createCompany()
  return { workspaceId: workspace.id, key }
}

const idsOf = (events: readonly TestResponse['json'][]): string[] => events.map(({ id }) => id)

/** An event whose values are rare, frequent and unique. */
function event(nth: number) {
  return {
    category: 'c',
    action: `a${nth % 3}`,
    actor: { id: `u${nth % 5}`, role: nth % 4 === 0 ? 'admin' : 'member' },
    metadata: {
      ip: `192.0.2.${nth % 50}`,
      request: { id: `req_${nth}`, tags: [`t${nth % 7}`, { name: `n${nth % 11}` }] },
      status: nth % 10 === 0 ? 500 : 200,
      ...(nth % 13 === 0 && { note: null }),
    },
  }
}

const events = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => event(from + index))

const hasNode = (path: string, ...texts: (string | null)[]) => {
  return ({ metadata }: TestResponse['json']) =>
    nodesOf(metadata ?? {}).some(([at, text]) => at === path && texts.includes(text))
}

const QUERIES: [Record<string, string | string[]>, (event: TestResponse['json']) => boolean][] = [
  [{ 'metadata.request.id': 'req_17' }, hasNode('request.id', 'req_17')],
  [{ 'metadata.ip': '192.0.2.7' }, hasNode('ip', '192.0.2.7')],
  [{ 'metadata.ip': ['192.0.2.7', '192.0.2.9'] }, hasNode('ip', '192.0.2.7', '192.0.2.9')],
  [{ 'metadata.status': '500' }, hasNode('status', '500')],
  [{ 'metadata.request.tags': 't3' }, hasNode('request.tags', 't3')],
  [{ 'metadata.request.tags.name': 'n4' }, hasNode('request.tags.name', 'n4')],
  [{ 'metadata.request.tags': 'n4' }, () => false],
  [{ hasMetadata: 'note' }, hasNode('note', 'null')],
  [{ actorRole: 'admin' }, ({ actor }) => actor.role === 'admin'],
  [
    { 'metadata.ip': '192.0.2.7', actorId: 'u2' },
    (one) => hasNode('ip', '192.0.2.7')(one) && one.actor.id === 'u2',
  ],
  [
    { 'metadata.status': '500', hasMetadata: 'note', order: 'asc' },
    (one) => hasNode('status', '500')(one) && hasNode('note', 'null')(one),
  ],
  [{ q: 'REQ_17' }, hasNode('request.id', 'req_17')],
  [{ q: 'u2' }, ({ actor }) => actor.id === 'u2'],
]

/** Compares every query with a plain scan. */
async function assertAllFound(key: string): Promise<void> {
  const all = await walkEvents(annals, key)
  for (const [parameters, isMatch] of QUERIES) {
    const wanted = idsOf(all.filter(isMatch))
    const found = idsOf(await walkEvents(annals, key, { limit: '20', ...parameters }))
    assert.deepEqual(
      found,
      parameters['order'] === 'asc' ? wanted.toReversed() : wanted,
      JSON.stringify(parameters),
    )
  }
}

test('finds exactly what a plain scan finds, in blocks, outside of them, and after archiving', async () => {
  const { workspaceId, key } = await newWorkspace()
  await sendEvents(annals, key, events(150))
  await assertAllFound(key)
  await buildSearchBlocks(db, workspaceId, 16)
  await assertAllFound(key)
  await sendEvents(annals, key, events(100, 150))
  await assertAllFound(key)
  await removeUpTo(annals, workspaceId, 40)
  await assertAllFound(key)
  await buildSearchBlocks(db, workspaceId, 7)
  await assertAllFound(key)
  await archiveAll(annals)
  await sendEvents(annals, key, events(60, 250))
  await buildSearchBlocks(db, workspaceId, 16)
  await assertAllFound(key)
})

test('finds events with timestamps in any order', async () => {
  const { workspaceId, key } = await newWorkspace()
  const nowMs = Date.now()
  const scattered = events(300).map((one, nth) => ({
    ...one,
    timestamp: new Date(nowMs - ((nth * 7_919) % 300) * 3_600_000).toISOString(),
  }))
  await sendEvents(annals, key, scattered)
  await buildSearchBlocks(db, workspaceId, 4)
  await assertAllFound(key)
})

test('never misses an event while events arrive, are put into blocks and are archived', async () => {
  const { workspaceId, key } = await newWorkspace()
  const BATCHES = 30
  let sent = 0
  let archivedSeq = 0
  const acknowledged: { id: string; nth: number }[] = []
  const isWriting = () => sent < BATCHES
  const writing = async () => {
    while (isWriting()) {
      const from = sent * 20
      sent += 1
      const ids = await sendEvents(annals, key, events(20, from))
      acknowledged.push(...ids.map((id, index) => ({ id, nth: from + index })))
    }
  }
  const covering = async () => {
    await using node = new Database({
      connection,
      role: 'annals_serving',
      connectionsMax: 2,
      logger,
    })
    while (isWriting()) {
      await advanceSearchBlocks(node.db, workspaceId, { blockEvents: 8 }).catch((error) => {
        if (!isOutage(error)) throw error
      })
    }
  }
  const archiving = async () => {
    while (isWriting()) {
      const [head] = await query(
        connection,
        `select seq from chain_head where workspace_id = '${workspaceId}'`,
      )
      const toSeq = Math.floor(Number(head?.['seq']) / 4)
      if (toSeq > archivedSeq) await removeUpTo(annals, workspaceId, toSeq)
      archivedSeq = Math.max(archivedSeq, toSeq)
    }
  }
  let searches = 0
  const searching = async () => {
    while (isWriting()) {
      const before = [...acknowledged]
      const found = new Set(idsOf(await walkEvents(annals, key, { 'metadata.status': '500' })))
      const hot = new Set(idsOf(await walkEvents(annals, key)))
      const missed = before.filter(({ id, nth }) => nth % 10 === 0 && hot.has(id) && !found.has(id))
      assert.deepEqual(missed, [])
      searches += 1
    }
  }
  await Promise.all([writing(), covering(), covering(), archiving(), searching()])
  assert(searches > 2)
  await assertAllFound(key)
  const [gaps] = await query(
    connection,
    `select count(*) as count from (
       select first_seq, lag(last_seq) over (order by first_seq) as before
         from search_block where workspace_id = '${workspaceId}') as b
      where before <> first_seq - 1`,
  )
  assert.equal(Number(gaps?.['count']), 0)
})

test('archived events stay in blocks', async () => {
  const { workspaceId, key } = await newWorkspace()
  await sendEvents(annals, key, events(50))
  await buildSearchBlocks(db, workspaceId, 16)
  await archiveAll(annals)
  const blocks = await query(
    connection,
    `select first_seq, last_seq, octet_length(slice_tokens) > 0 as known from search_block
      where workspace_id = '${workspaceId}' order by first_seq`,
  )
  const runs = blocks.map((block) => [Number(block['first_seq']), Number(block['last_seq'])])
  assert.deepEqual(runs, [
    [1, 16],
    [17, 32],
    [33, 48],
    [49, 50],
  ])
  assert(blocks.every((block) => block['known'] === true))
})

test('events that were deleted before they were in a block leave one that is always searched', async () => {
  const { workspaceId, key } = await newWorkspace()
  await sendEvents(annals, key, events(40))
  await buildSearchBlocks(db, workspaceId, 16)
  await removeUpTo(annals, workspaceId, 35)
  await sendEvents(annals, key, events(40, 40))
  await buildSearchBlocks(db, workspaceId, 16)
  await assertAllFound(key)
})

test('the comparison of texts agrees with parsing, whatever keys and values contain', async () => {
  const { key } = await newWorkspace()
  const pieces = fc.constantFrom(
    'a',
    'b',
    '1',
    '"',
    ',',
    ':',
    '{',
    '[',
    '}',
    ']',
    '\\',
    '.',
    'É',
    'true',
    '42',
  )
  const text = fc.oneof(
    { weight: 4, arbitrary: fc.array(pieces, { maxLength: 3 }).map((parts) => parts.join('')) },
    { weight: 1, arbitrary: anyText },
  )
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      text,
      fc.constantFrom(1, 42, 1e21, 1e-7, -1.5, true, false, null),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(text, tie('value'), { maxKeys: 3 }),
    ),
  }))
  const metadata = fc.dictionary(text, value, { maxKeys: 4 })
  const samples = fc.sample(metadata, { numRuns: 120, seed: 7 })
  const stored: { id: string; nodes: [string, string | null][] }[] = []
  for (const one of samples) {
    const { status, json } = await annals.call('POST', '/v1/events', {
      key,
      body: { category: '-', action: '-', metadata: one },
    })
    if (status === 201)
      stored.push({ id: json.id, nodes: nodesOf(JSON.parse(JSON.stringify(one))) })
  }
  assert(stored.length > 80)
  const terms = new Map(
    stored
      .flatMap(({ nodes }) => nodes)
      .filter(([path]) => path !== '')
      .map((node) => [JSON.stringify(node), node]),
  )
  const chosen = [...terms.values()].filter((_, nth) => nth % 2 === 0)
  for (const [path, wanted] of chosen) {
    const parameters = wanted === null ? { hasMetadata: path } : { [`metadata.${path}`]: wanted }
    const found = idsOf(await walkEvents(annals, key, parameters)).toSorted()
    const isMatch = ([at, got]: [string, string | null]) =>
      at === path && (wanted === null || got === wanted)
    const expected = stored.filter(({ nodes }) => nodes.some(isMatch)).map(({ id }) => id)
    assert.deepEqual(found, expected.toSorted(), JSON.stringify(parameters))
    if (wanted === null || wanted === '' || wanted.length > 200) continue
    const fold = (one: string | null) => one?.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
    const byText = idsOf(await walkEvents(annals, key, { q: wanted })).toSorted()
    const withText = stored.filter(
      ({ nodes }) => '-'.includes(wanted) || nodes.some(([, got]) => fold(got) === fold(wanted)),
    )
    assert.deepEqual(byText, withText.map(({ id }) => id).toSorted(), wanted)
  }
})

test('a key that looks like a number is never used as an array index', async () => {
  const { key } = await newWorkspace()
  const keys = ['1', '-1', '+1', ' 1', '\t1', '1x']
  const named = Object.fromEntries(keys.map((name) => [name, 'foo']))
  const { json } = await annals.call('POST', '/v1/events', {
    key,
    body: { category: '-', action: '-', metadata: { list: ['y', 'foo'], named } },
  })
  for (const name of keys) {
    const found = async (path: string) =>
      idsOf(await walkEvents(annals, key, { [`metadata.${path}.${name}`]: 'foo' }))
    assert.deepEqual([await found('list'), await found('named')], [[], [json.id]], name)
  }
})

test('a worker puts full blocks of all workspaces together on its own', async () => {
  const { workspaceId, key } = await newWorkspace()
  for (let batch = 0; batch < 5; batch += 1) {
    await sendEvents(annals, key, events(450, batch * 450))
  }
  await using worker = startSearchBlockWorker({ db, logger })
  await worker.runNow()
  const blocks = await query(
    connection,
    `select last_seq - first_seq + 1 as events from search_block where workspace_id = '${workspaceId}'`,
  )
  assert.deepEqual(
    blocks.map((block) => Number(block['events'])),
    [1_024, 1_024],
  )
  await assertAllFound(key)
})
