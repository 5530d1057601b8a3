import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import { sealEvent } from '../../ledger/chain.ts'
import { EMPTY_HEAD, headAfter, type SealedEvent } from '../../ledger/event.ts'
import { NO_FILTER } from '../../ledger/filter/event-filter.ts'
import { newId } from '../../platform/id.ts'
import { chargeCpu, noteActivity, requestShare } from '../../platform/scheduling/time-slice.ts'
import type { ExportFormat, ExportRange } from './job/export-job.ts'
import { ExportRun, type ReadRange } from './export-run.ts'
import { CSV_HEADER, csvRow } from './format/format-csv.ts'
import { jsonlRow } from './format/format-jsonl.ts'

const SALTS = { actor: Buffer.alloc(16), metadata: Buffer.alloc(16), resource: Buffer.alloc(16) }

function createChain(blobs: readonly string[]): SealedEvent[] {
  const workspace = { companyId: newId<'company'>(), workspaceId: newId<'workspace'>() }
  const events: SealedEvent[] = []
  let head = EMPTY_HEAD
  for (const [index, blob] of blobs.entries()) {
    const event = sealEvent(
      head,
      {
        ...workspace,
        projectId: null,
        timestampMs: index,
        receivedAtMs: index,
        category: 'c',
        action: 'a',
        traceId: null,
        actor: null,
        metadata: JSON.stringify({ blob }),
        resource: null,
      },
      { id: newId(1_000 + index), salts: SALTS },
    )
    events.push(event)
    head = headAfter(event)
  }
  return events
}

type Ledger = Map<string, SealedEvent[]>

/** Reads pages like the real reader, and adds the size of each to `pages`. */
function readerOf(ledger: Ledger, pages: number[] = []): ReadRange {
  return async function* ({ workspaceId, fromSeq, toSeq }, _filter, limit) {
    const events = ledger.get(workspaceId)?.slice(fromSeq - 1, toSeq) ?? []
    for (let start = 0; start < events.length;) {
      const page = events.slice(start, start + limit().rows)
      pages.push(page.length)
      start += page.length
      yield page
    }
  }
}

function runOf(
  read: ReadRange,
  ranges: readonly ExportRange[],
  {
    format = 'JSONL',
    rowLimit = 1_000_000,
    owner = 'company',
    signal = new AbortController().signal,
  }: {
    format?: ExportFormat
    rowLimit?: number
    owner?: string
    signal?: AbortSignal
  } = {},
): ExportRun {
  const options = { format, filter: NO_FILTER, ranges, rowLimit, read, owner, signal }
  return new ExportRun({ ...options, includeStubs: false, now: () => 0 })
}

function ledgerOf(chains: readonly SealedEvent[][]): { ledger: Ledger; ranges: ExportRange[] } {
  const ledger: Ledger = new Map()
  const ranges: ExportRange[] = []
  for (const chain of chains) {
    const [first] = chain
    if (!first) continue
    ledger.set(first.workspaceId, chain)
    ranges.push({ workspaceId: first.workspaceId, fromSeq: 1, toSeq: chain.length })
  }
  return { ledger, ranges }
}

const anyChain = fc
  .array(fc.string({ unit: 'grapheme' }), { maxLength: 40 })
  .map((blobs) => createChain(blobs))

test('returns the rows in order, up to the limit, with a matching result', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyChain, { maxLength: 3 }),
      fc.constantFrom<ExportFormat>('JSONL', 'CSV'),
      fc.integer({ min: 1, max: 130 }),
      async (chains, format, rowLimit) => {
        const { ledger, ranges } = ledgerOf(chains)
        const run = runOf(readerOf(ledger), ranges, { format, rowLimit })
        const bytes = Buffer.concat(
          await Array.fromAsync(run.chunks(), (chunk) => Buffer.from(chunk)),
        )
        const events = chains.flat()
        const rows = events.slice(0, rowLimit).map(format === 'CSV' ? csvRow : jsonlRow)
        assert.equal(bytes.toString(), (format === 'CSV' ? CSV_HEADER : '') + rows.join(''))
        assert.deepEqual(run.result, {
          rows: rows.length,
          isTruncated: events.length > rowLimit,
          sha256: createHash('sha256').update(bytes).digest('hex'),
          bytes: bytes.length,
          spans: spansOf(chains, rowLimit),
        })
      },
    ),
    { numRuns: rounds(15, 50) },
  )
})

function spansOf(chains: readonly (readonly SealedEvent[])[], rowLimit: number) {
  let rowsLeft = rowLimit
  // An empty chain has no range.
  const ranges = chains.filter((chain) => chain.length > 0)
  return ranges.map((chain) => {
    const rows = chain.slice(0, rowsLeft)
    rowsLeft -= rows.length
    const [first, last] = [rows[0], rows.at(-1)]
    return first && last ? { firstSeq: first.seq, lastSeq: last.seq } : null
  })
}

test('an empty CSV has only its header, and an empty JSONL file has no bytes', async () => {
  const chunks = async (format: ExportFormat) =>
    (await Array.fromAsync(runOf(readerOf(new Map()), [], { format }).chunks())).map(String)
  assert.deepEqual(await chunks('CSV'), [CSV_HEADER])
  assert.deepEqual(await chunks('JSONL'), [])
})

test('reads a page only after the previous one was consumed', async () => {
  const { ledger, ranges } = ledgerOf([createChain(Array.from({ length: 900 }, () => 'x'))])
  const pages: number[] = []
  const chunks = runOf(readerOf(ledger, pages), ranges).chunks()
  assert.deepEqual(pages, [])
  await chunks.next()
  assert.deepEqual(pages, [50])
  await chunks.return()
  assert.deepEqual(pages, [50])
})

test('pages start small, grow as data is consumed, and read one extra row', async () => {
  const sizes = async (count: number, bytes: number, rowLimit = 1_000_000) => {
    const { ledger, ranges } = ledgerOf([
      createChain(Array.from({ length: count }, () => 'x'.repeat(bytes))),
    ])
    const pages: number[] = []
    for await (const _chunk of runOf(readerOf(ledger, pages), ranges, { rowLimit }).chunks());
    return pages
  }
  // With rows of about 700 bytes, 256 KiB are about 370 rows.
  const small = await sizes(2_000, 1)
  assert.deepEqual(small.slice(0, 2), [50, 200])
  assert(
    small.slice(2, -1).every((rows) => rows > 250 && rows < 500),
    String(small),
  )
  const large = await sizes(400, 100_000)
  assert(
    large.slice(1, 40).every((rows) => rows >= 1 && rows <= 3),
    String(large),
  )
  // After 16 MiB, pages of 4 MiB.
  const lastPages = large.slice(-4, -1)
  assert(
    lastPages.every((rows) => rows > 20 && rows < 50),
    String(large),
  )
  assert.deepEqual(await sizes(300, 1, 10), [11])
})

test('a stopped run reads nothing more', async () => {
  const { ledger, ranges } = ledgerOf([createChain(Array.from({ length: 900 }, () => 'x'))])
  const pages: number[] = []
  const stop = new AbortController()
  const chunks = runOf(readerOf(ledger, pages), ranges, { signal: stop.signal }).chunks()
  await chunks.next()
  stop.abort(new Error('stopped'))
  await assert.rejects(Array.fromAsync(chunks), /stopped/)
  assert.deepEqual(pages, [50])
})

test('a run is charged to its company', async () => {
  // 40 MB, because some systems measure CPU time in steps of 4 ms.
  const blobs = Array.from({ length: 400 }, () => 'x'.repeat(100_000))
  const { ledger, ranges } = ledgerOf([createChain(blobs)])
  const owner = newId<'company'>()
  for await (const _chunk of runOf(readerOf(ledger), ranges, { owner }).chunks());
  assert(requestShare.usedMs(owner) > 0)
})

test('a run whose company has used up its share waits for it, and a stopped run does not', async () => {
  const { ledger, ranges } = ledgerOf([createChain(Array.from({ length: 900 }, () => 'x'))])
  const owner = newId<'company'>()
  const stop = new AbortController()
  const chunks = runOf(readerOf(ledger), ranges, { owner, signal: stop.signal }).chunks()
  await chunks.next()
  noteActivity('another company')
  chargeCpu(owner, 10_000)
  assert(requestShare.pauseMs(owner) > 10_000)
  let hasEnded = false
  const next = chunks.next().finally(() => (hasEnded = true))
  for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate)
  assert.equal(hasEnded, false)
  stop.abort(new Error('stopped'))
  await assert.rejects(next, /stopped/)
})
