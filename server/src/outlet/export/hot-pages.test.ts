import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { matchesFilter } from '../../../test/harness/event/metadata-match.ts'
import { anyEvent } from '../../../test/harness/event/any-event.ts'
import { copyBytes, hotPageOf, stubOf } from '../../../test/harness/export/copy-format.ts'
import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import { CORE_FIELDS } from '../../../test/harness/export/row-fields.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, NO_FILTER } from '../../ledger/filter/event-filter.ts'
import { type LedgerPage, HotPage } from '../../ledger/hot/hot-page.ts'
import { newId, type WorkspaceId } from '../../platform/id.ts'
import { EXPORT_FORMATS, type ExportFormat } from './job/export-job.ts'
import { ExportRun } from './export-run.ts'
import { CSV_HEADER, csvRow } from './format/format-csv.ts'
import { jsonlRow, jsonlStub } from './format/format-jsonl.ts'

const workspaceId: WorkspaceId = newId()
const event = anyEvent(workspaceId)

function exportOf(format: ExportFormat, pages: readonly LedgerPage[], rowLimit = 1_000_000) {
  return new ExportRun({
    format,
    filter: NO_FILTER,
    ranges: [{ workspaceId, fromSeq: 1, toSeq: 1 }],
    rowLimit,
    includeStubs: false,
    read: async function* () {
      yield* pages
    },
    now: () => 0,
    owner: 'company',
    signal: new AbortController().signal,
  })
}

/** An export of a whole chain, with stubs of the events that don't match. */
function completeExportOf(filter: EventFilter, pages: readonly LedgerPage[], count: number) {
  return new ExportRun({
    format: 'JSONL',
    filter,
    ranges: count === 0 ? [] : [{ workspaceId, fromSeq: 1, toSeq: count }],
    rowLimit: count,
    includeStubs: true,
    read: async function* () {
      yield* pages
    },
    now: () => 0,
    owner: 'company',
    signal: new AbortController().signal,
  })
}

async function textOf(run: ExportRun): Promise<string> {
  return Buffer.concat(
    await Array.fromAsync(run.chunks(), (chunk) => Buffer.from(chunk)),
  ).toString()
}

function rowsOf(format: ExportFormat, events: readonly SealedEvent[]): string {
  return format === 'CSV' ? CSV_HEADER + events.map(csvRow).join('') : events.map(jsonlRow).join('')
}

test('a hot page is read back as the events it was built from', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 5 }), (events) => {
      const page = hotPageOf(events, { workspaceId })
      assert.equal(page.count, events.length)
      assert.deepEqual(page.events, events)
    }),
  )
})

for (const format of EXPORT_FORMATS) {
  test(`${format}: exports any event with the same bytes from the table and from the archive`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 8 }), async (events) => {
        const run = exportOf(format, [hotPageOf(events, { workspaceId })])
        assert.equal(await textOf(run), rowsOf(format, events))
      }),
      { numRuns: rounds(60, 200) },
    )
  })

  test(`${format}: combines hot and cold pages in any order into one export, up to its limit`, async () => {
    const pages = fc.array(fc.tuple(fc.boolean(), fc.array(event, { maxLength: 4 })))
    await fc.assert(
      fc.asyncProperty(pages, fc.integer({ min: 1, max: 40 }), async (parts, rowLimit) => {
        const all = parts.flatMap(([, events]) => events)
        const run = exportOf(
          format,
          parts.map(([isHot, events]) => (isHot ? hotPageOf(events, { workspaceId }) : events)),
          rowLimit,
        )
        assert.equal(await textOf(run), rowsOf(format, all.slice(0, rowLimit)))
        assert.equal(run.result.isTruncated, all.length > rowLimit)
        assert.equal(run.rows, Math.min(all.length, rowLimit))
      }),
    )
  })

  test(`${format}: never splits a row, whatever its size`, async () => {
    const [sample] = fc.sample(event, { numRuns: 1, seed: 7 })
    assert(sample)
    const sizes = [1, 60_000, 131_072, 3, 400_000, 40_000, 40_000, 40_000, 200_000, 5]
    const events = sizes.map((size, index) => ({
      ...sample,
      seq: index + 1,
      category: '\u0001'.repeat(Math.min(size, 20_000)),
      metadata: JSON.stringify({ text: '"'.repeat(size) }),
    }))
    const run = exportOf(format, [hotPageOf(events, { workspaceId })])
    assert.equal(await textOf(run), rowsOf(format, events))
  })
}

test('a page reports how far it was scanned: to its last event if full, otherwise to the end', () => {
  const events = fc.sample(event, 3).map((sample, index) => ({ ...sample, seq: 10 + index }))
  const looked = (limit: number) =>
    new HotPage(copyBytes(events), { workspaceId, toSeq: 500, limit }).scannedSeq
  assert.deepEqual([looked(3), looked(4)], [12, 500])
  const empty = new HotPage(copyBytes([]), { workspaceId, toSeq: 500, limit: 3 })
  assert.deepEqual([empty.scannedSeq, empty.count, empty.events], [500, 0, []])
})

test('rejects a page that is truncated or contains other data', () => {
  const bytes = copyBytes(fc.sample(event, 2))
  const read = (page: Buffer) => new HotPage(page, { workspaceId, toSeq: 1, limit: 10 })
  assert.equal(read(bytes).count, 2)
  for (let length = 0; length < bytes.length; length += 1) {
    assert.throws(() => read(bytes.subarray(0, length)), `${length} of ${bytes.length}`)
  }
  assert.throws(() => read(Buffer.concat([bytes, Buffer.from([0])])))
  for (const offset of [0, 20, 24, 44]) {
    const broken = Buffer.from(bytes)
    broken.writeUInt8((broken[offset] ?? 0) ^ 1, offset)
    assert.throws(() => read(broken), `byte ${offset}`)
  }
})

test('a stub has the fields that the hash covers, as in the row, and the hash', () => {
  fc.assert(
    fc.property(event, (any) => {
      const row = JSON.parse(jsonlRow(any))
      const stub = JSON.parse(jsonlStub(any))
      assert.deepEqual(Object.keys(stub), ['stub', ...CORE_FIELDS, 'hash'])
      assert.equal(stub.stub, true)
      for (const name of [...CORE_FIELDS, 'hash']) assert.deepEqual(stub[name], row[name])
    }),
  )
})

test('a complete export has the same bytes from the table and from the archive', async () => {
  const pages = fc.array(fc.tuple(fc.boolean(), fc.array(event, { maxLength: 4 })))
  await fc.assert(
    fc.asyncProperty(pages, fc.nat(3), async (parts, nth) => {
      let seq = 0
      const chain = parts.map(
        ([isHot, events]) => [isHot, events.map((any) => ({ ...any, seq: ++seq }))] as const,
      )
      const all = chain.flatMap(([, events]) => events)
      const filter = { ...NO_FILTER, category: all[nth]?.category ?? '' }
      const isMatch = (any: SealedEvent) => matchesFilter(any, filter)
      const run = completeExportOf(
        filter,
        chain.map(([isHot, events]) =>
          isHot
            ? hotPageOf(
                events.map((any) => (isMatch(any) ? any : stubOf(any))),
                { workspaceId },
              )
            : events,
        ),
        seq,
      )
      const lines = all.map((any) => (isMatch(any) ? jsonlRow(any) : jsonlStub(any)))
      assert.equal(await textOf(run), lines.join(''))
      assert.equal(run.result.rows, all.filter(isMatch).length)
      assert.equal(run.result.isTruncated, false)
    }),
    { numRuns: rounds(60, 200) },
  )
})

test('a complete export fails if an event is missing at the start, in the middle or at the end', async () => {
  const [any] = fc.sample(event, 1)
  assert(any)
  const chain = [1, 2, 3, 4].map((seq) => ({ ...any, seq }))
  for (const missing of [1, 2, 3, 4]) {
    const events = chain.filter(({ seq }) => seq !== missing)
    for (const page of [events, hotPageOf(events.map(stubOf), { workspaceId })]) {
      await assert.rejects(textOf(completeExportOf(NO_FILTER, [page], 4)), {
        name: 'SegmentMissingError',
        message: `The archive has no file with event ${missing}.`,
      })
    }
  }
})
