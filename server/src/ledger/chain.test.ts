import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'

import canonicalize from 'canonicalize'
import * as fc from 'fast-check'

import { assertId, newId } from '../platform/id.ts'
import { canonicalJson } from './canonical.ts'
import { coreText, recomputeHash, sealEvent, verifyLink } from './chain.ts'
import { commitPart, createSaltSource, parsePartTexts, partTextsJson } from './commitment.ts'
import {
  EMPTY_HEAD,
  headAfter,
  PART_NAMES,
  type ChainHead,
  type PendingEvent,
  type SealedEvent,
} from './event.ts'

const START_MS = Date.parse('2026-01-01T00:00:00Z')

/** Any character that UTF-8 can encode. fast-check's own unit 'binary' takes a second to build. */
const anyChar = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((point) => String.fromCodePoint(point))
const anyText = fc.string({ unit: anyChar })
const anyId = fc.uuid({ version: [4, 7] }).map((text) => assertId<never>(text))
const anyMs = fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 })
const anyPart = fc.option(fc.dictionary(anyText, fc.jsonValue({ maxDepth: 2 })).map(canonicalJson))
const anyEvent: fc.Arbitrary<PendingEvent> = fc.record({
  companyId: anyId,
  workspaceId: anyId,
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
const anyChain = fc.array(anyEvent, { minLength: 1, maxLength: 4 }).map(sealAll)

function sealAll(events: readonly PendingEvent[]): SealedEvent[] {
  const nextSalts = createSaltSource()
  let head = EMPTY_HEAD
  return events.map((event, index) => {
    const sealed = sealEvent(head, event, { id: newId(START_MS + index), salts: nextSalts() })
    head = headAfter(sealed)
    return sealed
  })
}

/** The number of events that verify, starting from the first. */
function verifiedCount(events: readonly SealedEvent[], from: ChainHead = EMPTY_HEAD): number {
  let head = from
  for (const [index, event] of events.entries()) {
    if (!verifyLink(head, event).ok) return index
    head = headAfter(event)
  }
  return events.length
}

test('the template produces the same bytes as a general canonicalizer', () => {
  fc.assert(
    fc.property(anyChain, (events) => {
      for (const event of events) {
        const core = canonicalize({
          v: 1,
          id: event.id,
          seq: event.seq,
          companyId: event.companyId,
          workspaceId: event.workspaceId,
          projectId: event.projectId,
          timestamp: new Date(event.timestampMs).toISOString(),
          receivedAt: new Date(event.receivedAtMs).toISOString(),
          category: event.category,
          action: event.action,
          traceId: event.traceId,
          sealed: JSON.parse(event.sealed),
          prevHash: event.prevHash,
        })
        assert(core !== undefined)
        assert.equal(coreText(event), core)
        assert.equal(event.hash, createHash('sha256').update('\0').update(core).digest('hex'))
      }
    }),
  )
})

test('a commitment is the HMAC that the format specifies, for values of any length', () => {
  const anyValue = fc.oneof(
    anyText,
    fc.integer({ min: 5_000, max: 30_000 }).map((n) => '€'.repeat(n)),
  )
  const [drawSalts, name] = [createSaltSource(), fc.constantFrom(...PART_NAMES)]
  fc.assert(
    fc.property(name, anyValue, (part, value) => {
      const salt = drawSalts()[part]
      const expected = createHmac('sha256', salt)
        .update(`annals/v1/${part}\0${value}`)
        .digest('hex')
      assert.equal(commitPart(part, value, salt), expected)
    }),
  )
})

test('a map of hex strings is parsed only in its canonical form', () => {
  const hex = fc.string({ unit: fc.constantFrom('0', '7', 'f', 'F', ',', '"'), maxLength: 4 })
  const entry = fc
    .tuple(fc.constantFrom(...PART_NAMES, 'x'), hex)
    .map(([name, text]) => `"${name}":"${text}"`)
  const json = fc
    .tuple(
      fc.array(entry, { maxLength: 4 }),
      fc.constantFrom(',', '', ', '),
      fc.constantFrom('}', ',}', '}\n', ''),
    )
    .map(([entries, comma, end]) => `{${entries.join(comma)}${end}`)
  fc.assert(
    fc.property(json, (text) => {
      const texts = parsePartTexts(text, 2)
      const isCanonical = /^\{("[a-z]+":"[0-9a-f]{2}",?)*\}$/.test(text) && isWritten(text)
      assert.equal(texts !== null, isCanonical, text)
      if (texts !== null) assert.equal(partTextsJson(texts), text)
    }),
    { numRuns: 3_000 },
  )
})

function isWritten(text: string): boolean {
  try {
    return partTextsJson(JSON.parse(text)) === text
  } catch {
    return false
  }
}

test('sealed events verify, from the first event or from any head', () => {
  fc.assert(
    fc.property(anyChain, (events) => {
      assert.equal(verifiedCount(events), events.length)
      const [first, ...others] = events
      assert(first !== undefined)
      assert.equal(verifiedCount(others, headAfter(first)), others.length)
    }),
  )
})

test('erasing any parts with their salts leaves the chain valid', () => {
  fc.assert(
    fc.property(anyChain, fc.subarray([...PART_NAMES]), (events, names) => {
      const erased = events.map((event) => {
        const salts = parsePartTexts(event.salts, 32)
        assert(salts !== null)
        const parts = Object.fromEntries(names.map((name) => [name, null]))
        for (const name of names) delete salts[name]
        return { ...event, ...parts, salts: partTextsJson(salts) }
      })
      assert.equal(verifiedCount(erased), events.length)
    }),
  )
})

/** Every column of a stored event, each with a change that a forger might make. */
const FORGERIES: { [Column in keyof SealedEvent]: (event: SealedEvent) => Partial<SealedEvent> } = {
  id: () => ({ id: newId(START_MS + 999) }),
  seq: ({ seq }) => ({ seq: seq + 1 }),
  companyId: () => ({ companyId: newId() }),
  workspaceId: () => ({ workspaceId: newId() }),
  projectId: ({ projectId }) => ({ projectId: projectId === null ? newId() : null }),
  timestampMs: ({ timestampMs }) => ({ timestampMs: timestampMs + (timestampMs > 0 ? -1 : 1) }),
  receivedAtMs: ({ receivedAtMs }) => ({
    receivedAtMs: receivedAtMs + (receivedAtMs > 0 ? -1 : 1),
  }),
  category: ({ category }) => ({ category: `${category} ` }),
  action: ({ action }) => ({ action: `${action}\u0301` }),
  traceId: ({ traceId }) => ({ traceId: traceId === null ? '' : null }),
  actor: ({ actor }) => ({ actor: actor === null ? '{}' : `${actor} ` }),
  metadata: ({ metadata }) => ({ metadata: metadata === '{}' ? '{"a":1}' : '{}' }),
  resource: ({ resource }) => ({ resource: resource === null ? 'null' : null }),
  prevHash: ({ hash }) => ({ prevHash: hash }),
  hash: ({ prevHash }) => ({ hash: prevHash }),
  sealed: ({ sealed }) => ({ sealed: sealed === '{}' ? `{"actor":"${'0'.repeat(64)}"}` : '{}' }),
  salts: ({ salts }) => ({ salts: salts === '{}' ? `{"actor":"${'0'.repeat(32)}"}` : '{}' }),
}

for (const [column, forge] of Object.entries(FORGERIES)) {
  test(`detects a change of ${column} in any event at that event`, () => {
    fc.assert(
      fc.property(anyChain, fc.nat(), (events, position) => {
        const index = position % events.length
        const forged = events.map((event, at) =>
          at === index ? { ...event, ...forge(event) } : event,
        )
        assert.equal(verifiedCount(forged), index)
      }),
      { numRuns: 15 },
    )
  })
}

test('detects a removed, repeated or moved event', () => {
  const chain = fc.array(anyEvent, { minLength: 3, maxLength: 3 }).map(sealAll)
  fc.assert(
    fc.property(chain, ([first, second, third]) => {
      assert(first !== undefined && second !== undefined && third !== undefined)
      assert.equal(verifiedCount([second, third]), 0)
      assert.equal(verifiedCount([first, third]), 1)
      assert.equal(verifiedCount([first, first, second]), 1)
      assert.equal(verifiedCount([first, third, second]), 1)
    }),
    { numRuns: 20 },
  )
})

test('reports malformed stored data as a finding, and never throws', () => {
  const [event] = sealAll(fc.sample(anyEvent, 1))
  assert(event !== undefined)
  for (const [damage, problem] of [
    [{ timestampMs: Number.NaN }, /timestamp/],
    [{ receivedAtMs: 8.64e15 }, /receivedAt/],
    [{ seq: 1.5 }, /seq/],
    [{ category: '\ud800' }, /category/],
    [{ sealed: '' }, /sealed/],
    [{ sealed: '{"actor":"xyz"}' }, /sealed/],
    [{ sealed: '{"other":"00"}' }, /sealed/],
    [{ salts: 'null' }, /salts/],
    [{ salts: ' {}' }, /salts/],
  ] as const) {
    const verdict = recomputeHash({ ...event, ...damage })
    assert(!verdict.ok)
    assert.match(verdict.problem, problem)
  }
})

test('never seals an id that does not ascend', () => {
  const [event] = sealAll(fc.sample(anyEvent, 1))
  assert(event !== undefined)
  const salts = createSaltSource()()
  assert.throws(
    () => sealEvent(headAfter(event), event, { id: event.id, salts }),
    assert.AssertionError,
  )
})

test('never reuses a salt, within an event, between events or between pools', () => {
  const nextSalts = createSaltSource()
  const drawn = Array.from({ length: 600 }, nextSalts)
  const texts = drawn.flatMap((salts) => PART_NAMES.map((name) => salts[name].toString('hex')))
  assert.equal(new Set(texts).size, 1_800)
})
