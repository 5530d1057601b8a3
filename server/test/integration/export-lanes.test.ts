import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import * as fc from 'fast-check'
import type { SealedEvent } from '../../src/ledger/event.ts'
import { listChainRun } from '../../src/ledger/event-store.ts'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { eventsOf } from '../../src/ledger/hot/hot-page.ts'
import { readEvents } from '../../src/ledger/reader.ts'
import { CSV_HEADER, csvRow } from '../../src/outlet/export/format/format-csv.ts'
import { jsonlRow } from '../../src/outlet/export/format/format-jsonl.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { anyText } from '../harness/event/any-event.ts'
import { query } from '../harness/database/engine.ts'
import {
  BULK_BYTES,
  download,
  makeExport,
  storeBulk,
  storeEvents,
} from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

const EVENTS = 400
const TIMES = [
  '0000-01-01T00:00:00.000Z',
  '0000-12-31T23:59:59.999Z',
  '0001-01-01T00:00:00.000Z',
  '0099-02-28T12:00:00.001Z',
  '1582-10-10T10:10:10.010Z',
  '1969-12-31T23:59:59.999Z',
  '1999-12-31T23:59:59.999Z',
  '2000-02-29T00:00:00.000Z',
]

/** Row by row, with a separate statement. */
async function storedEvents(workspaceId: WorkspaceId): Promise<SealedEvent[]> {
  const events: SealedEvent[] = []
  for (let hasMore = true; hasMore;) {
    const afterSeq = events.at(-1)?.seq ?? 0
    const run = await listChainRun(annals.app.database.db, { workspaceId, afterSeq, limit: 10_000 })
    events.push(...run.entries.map(({ event }) => event))
    hasMore = run.hasMore
  }
  return events
}

async function assertExportsAre(key: string, events: readonly SealedEvent[]): Promise<void> {
  const jsonl = await download(annals, key, await makeExport(annals, key))
  assert.equal(jsonl.text, events.map(jsonlRow).join(''))
  const csv = await download(annals, key, await makeExport(annals, key, { format: 'CSV' }))
  assert.equal(csv.text, CSV_HEADER + events.map(csvRow).join(''))
}

test('a hot export has exactly the bytes of its events, whatever is stored', async () => {
  const { workspaceKey: key, workspace, project } = await annals.createCompany()
  const text = anyText.filter((value) => value !== '')
  const sample = fc.sample(fc.tuple(text, text, anyText, fc.nat()), EVENTS)
  const events = sample.map(([category, action, value, nth], index) => ({
    category,
    action,
    timestamp: TIMES[index % TIMES.length],
    ...(nth % 2 === 0 && { projectId: project.id }),
    ...(nth % 3 !== 0 && { actor: { id: value, ...(nth % 5 !== 0 && { role: action }) } }),
    ...(nth % 7 !== 0 && { resource: { type: category, id: value } }),
    ...(nth % 4 !== 0 && { metadata: { [value]: value, list: [nth, 1.5e300, null, { value }] } }),
  }))
  await storeEvents(annals, key, events)
  const erased = `update event set actor = null, actor_id = null, actor_email = null
                   where workspace_id = '${workspace.id}' and seq % 10 = 0`
  await query(annals.database.connection, erased)
  const traced = `update event set trace_id = null where workspace_id = '${workspace.id}' and seq % 3 = 0`
  await query(annals.database.connection, traced)
  const stored = await storedEvents(workspace.id)
  assert.equal(stored.length, EVENTS)
  for (const name of ['actor', 'metadata', 'projectId', 'resource', 'traceId'] as const) {
    assert(stored.some((event) => event[name] === null))
    assert(stored.some((event) => event[name] !== null))
  }
  await assertExportsAre(key, stored)
})

test('a page stays valid until the next one is requested, whatever is fetched meanwhile', async () => {
  const { workspaceKey: key, workspace } = await annals.createCompany()
  const count = 5_000
  const events = Array.from({ length: count }, (_, nth) => ({ category: 'c', action: `a ${nth}` }))
  await storeEvents(annals, key, events)
  const { database, archive } = annals.app
  const run = { workspaceId: workspace.id, fromSeq: 1, toSeq: count }
  // Alternates between page sizes below and above the prefetch threshold, similar and different
  // ones.
  const limits = [50, 500, 600, 550, 390, 380, 600, 10, 600, 900, 450]
  let calls = 0
  const limit = () => ({
    rows: limits[Math.floor(calls++ / 3) % limits.length] ?? 1,
    bytes: Infinity,
  })
  const read: SealedEvent[] = []
  for await (const page of readEvents({ database, archive }, run, NO_FILTER, limit)) {
    // Long enough for the next page to arrive.
    await storedEvents(workspace.id)
    read.push(...eventsOf(page))
  }
  assert.deepEqual(read, await storedEvents(workspace.id))
})

test('exports very large rows completely', async () => {
  const { workspaceKey: key, workspace } = await annals.createCompany()
  const count = 400
  await storeBulk(annals, key, count)
  const stored = await storedEvents(workspace.id)
  assert(stored.every(({ metadata }) => (metadata?.length ?? 0) > BULK_BYTES))
  await assertExportsAre(key, stored)
})
