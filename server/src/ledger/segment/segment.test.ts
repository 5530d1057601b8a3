import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'

import * as fc from 'fast-check'
import { parquetMetadata } from 'hyparquet'

import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import { assertId, newId } from '../../platform/id.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { chargeCpu, noteActivity, requestShare } from '../../platform/scheduling/time-slice.ts'
import { canonicalJson } from '../canonical.ts'
import { sealEvent } from '../chain.ts'
import { createSaltSource, parsePartTexts, partTextsJson, SALT_BYTES } from '../commitment.ts'
import {
  type ChainHead,
  EMPTY_HEAD,
  headAfter,
  PART_NAMES,
  type PartName,
  type PendingEvent,
  type SealedEvent,
} from '../event.ts'
import { encodeSegment, SEGMENT_ROWS_MAX, summarizeSegment } from './segment.ts'
import { footerSha256Of, parseFooter } from './segment-footer.ts'
import {
  groupMayContain,
  openSegment,
  readGroup,
  readSegment,
  SegmentDamagedError,
  type SegmentRange,
  sourceOf,
  verifySegment,
} from './segment-reader.ts'

const START_MS = Date.parse('2026-01-01T00:00:00Z')
const workspaceId = newId<'workspace'>(START_MS)

/** Any character that UTF-8 can encode, and often those that readers get wrong. */
const anyChar = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
    fc.constantFrom(0xfeff, 0x2028, 0xfffd),
  )
  .map((point) => String.fromCodePoint(point))
const anyText = fc.string({ unit: anyChar })
const anyId = fc.uuid({ version: [4, 7] }).map((text) => assertId<never>(text))
const anyMs = fc.oneof(
  fc.integer({ min: START_MS, max: START_MS + 1_000 }),
  fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }),
  fc.constantFrom(-62_167_219_200_000, -62_135_596_800_000, -1, 0, 253_402_300_799_999),
)
const anyNumber = fc.constantFrom(0, -1, 0.1, 1e21, 1e-7, 5e-324, 2 ** 53, Number.MAX_VALUE)
const anyPart = fc.option(
  fc
    .dictionary(anyText, fc.oneof(fc.jsonValue({ maxDepth: 2 }), anyNumber), { maxKeys: 4 })
    .map(canonicalJson),
)
const anyEvent: fc.Arbitrary<PendingEvent> = fc.record({
  companyId: anyId,
  workspaceId: fc.constant(workspaceId),
  projectId: fc.option(anyId),
  timestampMs: anyMs,
  receivedAtMs: anyMs,
  category: anyText,
  action: anyText,
  traceId: fc.option(anyText),
  actor: anyPart,
  metadata: anyPart,
  resource: anyPart,
})
/** A run that starts anywhere in a chain, with some parts erased. */
const anyRun = fc
  .record({
    entries: fc.array(fc.record({ event: anyEvent, erased: fc.subarray([...PART_NAMES]) }), {
      minLength: 1,
      maxLength: 12,
    }),
    seq: fc.constantFrom(0, 1, 12_345, Number.MAX_SAFE_INTEGER - 100),
  })
  .map(({ entries, seq }) => {
    const head = seq === 0 ? EMPTY_HEAD : { seq, hash: 'ab'.repeat(32), lastId: null }
    const events = sealAll(
      entries.map(({ event }) => event),
      head,
    )
    return events.map((event, index) => eraseParts(event, entries[index]?.erased ?? []))
  })

function sealAll(events: readonly PendingEvent[], from: ChainHead = EMPTY_HEAD): SealedEvent[] {
  const nextSalts = createSaltSource()
  let head = from
  return events.map((event, index) => {
    const sealed = sealEvent(head, event, { id: newId(START_MS + index), salts: nextSalts() })
    head = headAfter(sealed)
    return sealed
  })
}

function eraseParts(event: SealedEvent, names: readonly PartName[]): SealedEvent {
  const salts = { ...parsePartTexts(event.salts, SALT_BYTES * 2) }
  const erased = { ...event }
  for (const name of names) {
    erased[name] = null
    delete salts[name]
  }
  return { ...erased, salts: partTextsJson(salts) }
}

/** Twenty events with every kind of part, one minute apart except for two that are out of order. */
const run = sealAll(
  Array.from({ length: 20 }, (_, index) => ({
    companyId: newId<'company'>(START_MS),
    workspaceId,
    projectId: index % 2 === 0 ? null : newId<'project'>(START_MS),
    timestampMs: START_MS + 60_000 * (index === 3 ? 18 : index === 18 ? 3 : index),
    receivedAtMs: START_MS + 60_000 * index,
    category: ['auth', 'billing', 'files'][index % 3] ?? '',
    action: `did.${index}`,
    traceId: index % 3 === 0 ? null : '4bf92f3577b34da6a3ce929d0e0e4736',
    actor: '{"email":"ada@example.com","id":"u1"}',
    metadata: index % 4 === 0 ? null : `{"ip":"203.0.113.${index}"}`,
    resource: '{"id":"s1","type":"session"}',
  })),
).map((event) => eraseParts(event, event.seq % 5 === 0 ? ['actor'] : []))
const [firstEvent] = run
assert(firstEvent !== undefined)
const expected = summarizeSegment(run)
const file = await encodeSegment(run, { rowsPerGroupMax: 6 })

async function readAll(bytes: Buffer, range?: SegmentRange): Promise<SealedEvent[]> {
  return (await Array.fromAsync(readSegment(bytes, range))).flat()
}

/** Waits for longer than any read of a small file takes. */
async function passTurns(): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate)
}

function flipped(bytes: Buffer, offset: number, bit: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[offset] = (copy[offset] ?? 0) ^ (1 << bit)
  return copy
}

suite('a segment returns the events it was given', () => {
  test('stores any run of events byte for byte', async () => {
    await fc.assert(
      fc.asyncProperty(anyRun, fc.integer({ min: 1, max: 5 }), async (events, rowsPerGroupMax) => {
        const bytes = await encodeSegment(events, { rowsPerGroupMax })
        assert.deepEqual(await readAll(bytes), events)
        assert.deepEqual(await verifySegment(bytes, summarizeSegment(events)), { ok: true })
      }),
      { numRuns: rounds(15, 50) },
    )
  })

  test('a range returns exactly the requested events, from any row group', async () => {
    const anyMinute = fc.option(fc.integer({ min: -1, max: 21 }), { nil: undefined })
    const anySeq = fc.option(fc.integer({ min: -1, max: 22 }), { nil: undefined })
    await fc.assert(
      fc.asyncProperty(anySeq, anySeq, anyMinute, anyMinute, async (fromSeq, toSeq, from, to) => {
        const range = {
          ...(fromSeq !== undefined && { fromSeq }),
          ...(toSeq !== undefined && { toSeq }),
          ...(from !== undefined && { fromTimestampMs: START_MS + 60_000 * from }),
          ...(to !== undefined && { toTimestampMs: START_MS + 60_000 * to }),
        }
        const wanted = run.filter(
          ({ seq, timestampMs }) =>
            seq >= (fromSeq ?? 0) &&
            seq <= (toSeq ?? 99) &&
            timestampMs >= (range.fromTimestampMs ?? 0) &&
            timestampMs < (range.toTimestampMs ?? Infinity),
        )
        assert.deepEqual(await readAll(file, range), wanted)
      }),
    )
  })

  test('large events result in row groups with fewer rows', async () => {
    const metadata = canonicalJson({ text: 'x'.repeat(1_000_000) })
    const events = sealAll(run.slice(0, 10).map((event) => ({ ...event, metadata })))
    const bytes = await encodeSegment(events)
    assert.equal(parquetMetadata(bytes).row_groups.length, 2)
    assert.deepEqual(await readAll(bytes), events)
  })

  test('does not decode row groups outside the range', async () => {
    const [, second] = rowGroupsOf(file)
    assert(second !== undefined)
    const damaged = flipped(file, second.offset, 0)
    const others = run.filter(({ seq }) => seq < second.firstSeq)
    assert.deepEqual(await readAll(damaged, { toSeq: second.firstSeq - 1 }), others)
    await assert.rejects(readAll(damaged), {
      message: 'the bytes of events 7 to 12 have changed',
    })
  })
})

suite('a segment is read in parts', () => {
  /** Records which ranges of a file are read. The file may differ from the archived one. */
  function watch(bytes: Buffer) {
    const parts: [number, number][] = []
    const source = {
      bytes: file.length,
      read: async (start: number, end: number) => {
        parts.push([start, end])
        return bytes.subarray(start, end)
      },
    }
    return { source, parts }
  }
  const footerSha256 = footerSha256Of(file)

  test('reads the footer first, then each row group separately', async () => {
    const { source, parts } = watch(file)
    const segment = await openSegment(source, footerSha256)
    assert.equal(parts.length, 1)
    for (const group of segment.groups.toReversed()) {
      const events = await readGroup(segment, group)
      assert.deepEqual(
        events,
        run.filter(({ seq }) => seq >= group.firstSeq && seq < group.firstSeq + group.rows),
      )
    }
    assert.equal(parts.length, 1 + segment.groups.length)
    const range = { toTimestampMs: START_MS + 60_000 }
    assert.equal(segment.groups.filter((group) => groupMayContain(group, range)).length, 1)
  })

  test('reads an unusually long footer with a second request', async () => {
    const events = sealAll(
      Array.from({ length: 150 }, () => ({ ...firstEvent, category: 'c'.repeat(200) })),
    )
    const bytes = await encodeSegment(events, { rowsPerGroupMax: 1 })
    const segment = await openSegment(sourceOf(bytes), footerSha256Of(bytes))
    assert.equal(segment.groups.length, 150)
    assert.deepEqual(await readAll(bytes), events)
  })

  test('a reader detects a flipped bit in the part that it reads', async () => {
    const { groups } = await openSegment(sourceOf(file), null)
    const footerOffset = groups.reduce((sum, { bytes }) => sum + bytes, 4)
    for (let offset = 0; offset < file.length; offset += rounds(53, 13)) {
      const { source } = watch(flipped(file, offset, offset % 8))
      if (offset >= footerOffset) {
        await assert.rejects(openSegment(source, footerSha256), SegmentDamagedError, `${offset}`)
        continue
      }
      const segment = await openSegment(source, footerSha256)
      const damaged = segment.groups.findLast(({ fileOffset }) => fileOffset <= offset)
      const group = damaged ?? segment.groups[0]
      assert(group !== undefined)
      await assert.rejects(readGroup(segment, group), SegmentDamagedError, `at byte ${offset}`)
    }
  })

  test('rejects the footer of another file', async () => {
    const other = await encodeSegment(sealAll(run), { rowsPerGroupMax: 6 })
    await assert.rejects(openSegment(sourceOf(other), footerSha256), {
      message: 'the footer is not the one that was archived',
    })
  })
})

suite('damage is detected', () => {
  test('detects a flipped bit at any byte of the file', async () => {
    const small = await encodeSegment(run.slice(0, 5))
    const summary = summarizeSegment(run.slice(0, 5))
    for (let offset = 0; offset < small.length; offset += rounds(5, 1)) {
      const damaged = flipped(small, offset, offset % 8)
      assert.equal((await verifySegment(damaged, summary)).ok, false, `at byte ${offset}`)
    }
  })

  test('reads the intact row groups of a damaged file up to the damage', async () => {
    const anyOffset = fc.integer({ min: 0, max: file.length - 1 })
    await fc.assert(
      fc.asyncProperty(anyOffset, fc.integer({ min: 0, max: 7 }), async (offset, bit) => {
        const events: SealedEvent[] = []
        await assert.rejects(async () => {
          for await (const group of readSegment(flipped(file, offset, bit))) events.push(...group)
        }, SegmentDamagedError)
        assert.deepEqual(events, run.slice(0, events.length))
      }),
    )
  })

  test('treats a truncated or extended file as damaged', async () => {
    for (const bytes of [file.subarray(0, -1), file.subarray(1), Buffer.concat([file, file])]) {
      assert.equal((await verifySegment(bytes, expected)).ok, false)
    }
    for (let length = 0; length < 16; length += 1) {
      await assert.rejects(readAll(file.subarray(0, length)), SegmentDamagedError)
    }
  })

  test('rejects a segment that was rewritten with a changed event', async () => {
    const changes = fc.constantFrom<(event: SealedEvent) => Partial<SealedEvent>>(
      ({ timestampMs }) => ({ timestampMs: timestampMs + 1 }),
      ({ receivedAtMs }) => ({ receivedAtMs: receivedAtMs - 1 }),
      () => ({ companyId: newId(START_MS) }),
      ({ projectId }) => ({ projectId: projectId === null ? newId(START_MS) : null }),
      ({ category }) => ({ category: `${category} ` }),
      ({ action }) => ({ action: `${action}\0` }),
      ({ traceId }) => ({ traceId: traceId === null ? '' : null }),
      ({ id }) => ({ id: assertId(id.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))) }),
      ({ resource }) => ({ resource: `${resource} ` }),
      ({ salts }) => ({ salts: salts.replace(/"resource":"./, '"resource":"g').replace('g', '0') }),
      (event) => eraseParts({ ...event, sealed: '{}' }, PART_NAMES),
    )
    await fc.assert(
      fc.asyncProperty(changes, fc.nat({ max: run.length - 1 }), async (change, index) => {
        const forged = run.map((event, at) =>
          at === index ? { ...event, ...change(event) } : event,
        )
        fc.pre(!isDeepStrictEqual(forged, run))
        const bytes = await encodeSegment(forged, { rowsPerGroupMax: 6 })
        assert.equal((await verifySegment(bytes, expected)).ok, false)
        await assert.rejects(readAll(bytes), SegmentDamagedError)
      }),
      { numRuns: rounds(15, 50) },
    )
  })

  test('the summary reveals a segment that was replaced by another one', async () => {
    const others = summarizeSegment(sealAll(run))
    assert.equal((await verifySegment(file, others)).ok, false)
    for (const name of ['firstSeq', 'maxTimestampMs', 'minReceivedAtMs', 'rows'] as const) {
      const wrong = { ...expected, [name]: expected[name] + 1 }
      assert.deepEqual(await verifySegment(file, wrong), {
        ok: false,
        problem: `${name} is ${expected[name]}, expected ${expected[name] + 1}`,
      })
    }
  })
})

suite('only consecutive events of one chain become a segment', () => {
  const [first, second, third] = run
  assert(first !== undefined && second !== undefined && third !== undefined)
  const cases: [string, SealedEvent[]][] = [
    ['no events', []],
    ['a gap', [first, third]],
    ['another order', [second, first]],
    ['two workspaces', [first, { ...second, workspaceId: newId(START_MS) }]],
    ['a hash that the next event does not name', [{ ...first, hash: 'ff'.repeat(32) }, second]],
    ['a part without its salt', [{ ...first, salts: '{}' }]],
    ['too many', Array.from({ length: SEGMENT_ROWS_MAX + 1 }, () => first)],
  ]
  for (const [title, events] of cases) {
    test(title, async () => {
      await assert.rejects(encodeSegment(events), assert.AssertionError)
    })
  }

  test('reading a segment detects an event that was changed in the database', async () => {
    const events = run.map((event) => ({ ...event, action: event.seq === 7 ? 'x' : event.action }))
    assert.deepEqual(await verifySegment(await encodeSegment(events), expected), {
      ok: false,
      problem: `events 1 to 20 don't result in the hash ${expected.lastHash}`,
    })
  })
})

function rowGroupsOf(bytes: Buffer) {
  let offset = 4
  return parseFooter(parquetMetadata(bytes).key_value_metadata ?? []).rowGroups.map((group) => {
    offset += group.bytes
    return { ...group, offset: offset - group.bytes }
  })
}

test('reading is charged to the company that reads', async () => {
  // Enough for systems that measure CPU time in steps of 4 ms.
  const large = sealAll(Array.from({ length: 2_000 }, () => firstEvent))
  const bytes = await encodeSegment(large)
  const owner = newId<'company'>()
  await withRowOwner(owner, () => readAll(bytes))
  assert(requestShare.usedMs(owner) > 0)
})

test('a company that has used up its share waits to read, and the service does not', async () => {
  const owner = newId<'company'>()
  noteActivity('another company')
  chargeCpu(owner, 5_000)
  let hasEnded = false
  const reading = withRowOwner(owner, () => readAll(file)).finally(() => (hasEnded = true))
  assert.equal((await readAll(file)).length, run.length)
  await passTurns()
  assert.equal(hasEnded, false)
  await reading
})
