import * as fc from 'fast-check'
import { canonicalJson } from '../../../src/ledger/canonical.ts'
import type { SealedEvent } from '../../../src/ledger/event.ts'
import { assertId, type WorkspaceId } from '../../../src/platform/id.ts'

const YEAR_0000_MS = Date.UTC(-1, 12)
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

const PIECES = [
  ...'= + - @ \' " , \\ / { } [ ] : x ü 🎈 \u2028 \u2029 \ufeff \u007f'.split(' '),
  ' ',
  ';',
  '＝',
  '＋',
  '－',
  '＠',
  '＊',
  '\u00a0',
  '\u200b',
  '\u200c',
  '\u3000',
  '\t',
  '\r',
  '\n',
  '\b',
  '\f',
  '\u0001',
  '\u001f',
  '"id":"',
  '\\u0041',
  '\\N',
]

/** Texts that could break a format, among others. PostgreSQL can't store NUL. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', '')),
  fc.array(fc.constantFrom(...PIECES)).map((pieces) => pieces.join('')),
)

/** Any time that an event can have, often at a boundary. */
const anyMs = fc.oneof(
  fc.integer({ min: YEAR_0000_MS, max: LAST_MS }),
  fc.integer({ min: Date.UTC(2026, 0), max: Date.UTC(2026, 1) }),
  fc.constantFrom(
    YEAR_0000_MS,
    LAST_MS,
    -1,
    0,
    Date.UTC(2000, 0),
    Date.UTC(2000, 0) - 1,
    Date.UTC(2024, 1, 29),
  ),
)

const anyId = fc.uuid()
const anyHash = fc.stringMatching(/^[0-9a-f]{64}$/)

/**
 * String values by name, as ingest accepts them, including names that no format expects and texts
 * with spaces.
 */
function anyPart(...names: string[]): fc.Arbitrary<string | null> {
  const known = fc.record(Object.fromEntries(names.map((name) => [name, anyText])), {
    requiredKeys: [],
  })
  const others = fc.dictionary(fc.oneof(anyText, fc.constantFrom('i', 'ids', 'mail')), anyText)
  return fc.oneof(
    fc.constant(null),
    known.map((part) => canonicalJson(part)),
    fc.tuple(others, known).map(([other, part]) => canonicalJson({ ...other, ...part })),
    known.map((part) => JSON.stringify(part, null, 1)),
  )
}

const anyMetadata = fc.oneof(
  fc.constant(null),
  fc.jsonValue({ stringUnit: 'grapheme' }).map((value) => canonicalJson({ value })),
  anyText.map((text) => canonicalJson({ [text]: text })),
)

/** An event as it can be stored, with an arbitrary hash. */
export function anyEvent(workspaceId: WorkspaceId): fc.Arbitrary<SealedEvent> {
  return fc
    .record({
      seq: fc.oneof(
        fc.integer({ min: 1, max: 1_000 }),
        fc.maxSafeNat().map((seq) => seq || 1),
      ),
      id: anyId,
      companyId: anyId,
      projectId: fc.option(anyId),
      timestampMs: anyMs,
      receivedAtMs: anyMs,
      category: anyText,
      action: anyText,
      actor: anyPart('email', 'id', 'role'),
      resource: anyPart('id', 'type'),
      metadata: anyMetadata,
      traceId: fc.option(fc.stringMatching(/^[0-9a-f]{32}$/)),
      hash: anyHash,
      prevHash: anyHash,
      sealed: fc.dictionary(fc.constantFrom('actor', 'metadata', 'resource'), anyHash),
      salts: fc.dictionary(fc.constantFrom('actor', 'metadata', 'resource'), anyHash),
    })
    .map(({ id, companyId, projectId, sealed, salts, ...event }) => ({
      ...event,
      workspaceId,
      id: assertId(id),
      companyId: assertId(companyId),
      projectId: projectId === null ? null : assertId(projectId),
      sealed: canonicalJson(sealed),
      salts: canonicalJson(salts),
    }))
}
