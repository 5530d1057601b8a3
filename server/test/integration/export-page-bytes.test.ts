import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { NO_FILTER } from '../../src/ledger/filter/event-filter.ts'
import { type LedgerPage, HotPage } from '../../src/ledger/hot/hot-page.ts'
import { readEvents } from '../../src/ledger/reader.ts'
import { ExportRun } from '../../src/outlet/export/export-run.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const KIB = 1_024
/** Small enough that fifty rows are one database fetch, and one row group in the archive. */
const BLOB_BYTES = 120 * KIB
const LARGE_ROWS = 60
const SMALL_ROWS = 300

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { database, archive } = annals.app

/** The memory of a page while its client reads nothing. */
function bytesOf(page: LedgerPage): number {
  if (page instanceof HotPage) return page.bytes.buffer.byteLength
  return page.reduce(
    (sum, { metadata, sealed }) => sum + (metadata ?? '').length + sealed.length,
    0,
  )
}

/** The bytes of each page of an export, and whether the pages came from the table. */
async function pagesOf(workspaceId: WorkspaceId, count: number) {
  const pages: { bytes: number; isHot: boolean }[] = []
  const run = new ExportRun({
    format: 'JSONL',
    filter: NO_FILTER,
    ranges: [{ workspaceId, fromSeq: 1, toSeq: count }],
    rowLimit: 1_000_000,
    includeStubs: false,
    read: async function* (range, filter, limit) {
      for await (const page of readEvents({ database, archive }, range, filter, limit)) {
        pages.push({ bytes: bytesOf(page), isHot: page instanceof HotPage })
        yield page
      }
    },
    now: () => 0,
    owner: 'company',
    signal: new AbortController().signal,
  })
  for await (const _chunk of run.chunks());
  assert.equal(run.rows, count)
  return { pages, sha256: run.result.sha256 }
}

test('pages of large rows stay small from the start, hot and archived', async () => {
  const { workspaceKey: key, workspace } = await annals.createCompany()
  const blob = 'x'.repeat(BLOB_BYTES)
  const large = Array.from({ length: LARGE_ROWS }, (_, nth) => ({
    category: 'c',
    action: `large ${nth}`,
    metadata: { blob },
  }))
  const small = Array.from({ length: SMALL_ROWS }, (_, nth) => ({
    category: 'c',
    action: `${nth}`,
  }))
  // Small rows don't predict the size of the large ones after them.
  await storeEvents(annals, key, [...large, ...small, ...large])
  const count = 2 * LARGE_ROWS + SMALL_ROWS
  const hot = await pagesOf(workspace.id, count)
  assert.equal((await archiveAll(annals)).failed, 0)
  const cold = await pagesOf(workspace.id, count)
  assert.equal(cold.sha256, hot.sha256)
  for (const [{ pages }, isHot] of [
    [hot, true],
    [cold, false],
  ] as const) {
    assert(pages.every((page) => page.isHot === isHot))
    const sizes = pages.map(({ bytes }) => Math.round(bytes / KIB))
    assert(sizes[0] !== undefined && sizes[0] <= 320, String(sizes))
    assert(Math.max(...sizes) <= 1_100, String(sizes))
  }
})

test('events with long names are archived too', async () => {
  const { workspaceKey: key, workspace } = await annals.createCompany()
  const rows = 2_500
  // Three bytes per character. The archiver's first page of these would be 10 MB.
  const name = '名'.repeat(256)
  await storeEvents(
    annals,
    key,
    Array.from({ length: rows }, () => ({
      category: name,
      action: name,
      metadata: { blob: 'x'.repeat(2_200) },
    })),
  )
  const hot = await pagesOf(workspace.id, rows)
  assert.equal((await archiveAll(annals)).failed, 0)
  assert.equal((await pagesOf(workspace.id, rows)).sha256, hot.sha256)
})
