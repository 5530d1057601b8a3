import assert from 'node:assert/strict'

import type { SchemaElement } from 'hyparquet'
import type { ColumnSource } from 'hyparquet-writer'

import { parsePartTexts, partTextsJson, SALT_BYTES, type PartTexts } from '../commitment.ts'
import { PART_NAMES, type PartName, type SealedEvent } from '../event.ts'

/** The length of a SHA-256 in hex, for hashes in the chain and commitments. */
export const HASH_HEX_DIGITS = 64

/**
 * The columns of a segment, in order. Ids are text: Parquet's UUID type would save 3 of 109 bytes per
 * event, but Spark 4.0 rejects files that use it (apache/spark#55684).
 */
export const COLUMN_NAMES = [
  'seq',
  'id',
  'timestamp',
  'receivedAt',
  'companyId',
  'workspaceId',
  'projectId',
  'category',
  'action',
  'actor',
  'resource',
  'metadata',
  'traceId',
  'actorSalt',
  'resourceSalt',
  'metadataSalt',
  'sealedErased',
] as const
export type ColumnName = (typeof COLUMN_NAMES)[number]

const SEQ = { type: 'INT64' } as const
const TIME = {
  type: 'INT64',
  converted_type: 'TIMESTAMP_MILLIS',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
} as const
/** Also for JSON: the writer would serialize the values of a JSON column again. */
const TEXT = {
  type: 'BYTE_ARRAY',
  converted_type: 'UTF8',
  logical_type: { type: 'STRING' },
} as const
const SALT = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: SALT_BYTES } as const
const REQUIRED = { repetition_type: 'REQUIRED' } as const
const OPTIONAL = { repetition_type: 'OPTIONAL' } as const

const COLUMN_TYPES: Record<ColumnName, Omit<SchemaElement, 'name'>> = {
  seq: { ...SEQ, ...REQUIRED },
  id: { ...TEXT, ...REQUIRED },
  timestamp: { ...TIME, ...REQUIRED },
  receivedAt: { ...TIME, ...REQUIRED },
  companyId: { ...TEXT, ...REQUIRED },
  workspaceId: { ...TEXT, ...REQUIRED },
  projectId: { ...TEXT, ...OPTIONAL },
  category: { ...TEXT, ...REQUIRED },
  action: { ...TEXT, ...REQUIRED },
  actor: { ...TEXT, ...OPTIONAL },
  resource: { ...TEXT, ...OPTIONAL },
  metadata: { ...TEXT, ...OPTIONAL },
  traceId: { ...TEXT, ...OPTIONAL },
  actorSalt: { ...SALT, ...OPTIONAL },
  resourceSalt: { ...SALT, ...OPTIONAL },
  metadataSalt: { ...SALT, ...OPTIONAL },
  sealedErased: { ...TEXT, ...OPTIONAL },
}

export const SEGMENT_SCHEMA: SchemaElement[] = [
  { name: 'event', num_children: COLUMN_NAMES.length },
  ...COLUMN_NAMES.map((name) => ({ name, ...COLUMN_TYPES[name] })),
]

/**
 * The columns of one row group. Text is passed as bytes: for strings, the writer would compute minimum and
 * maximum by UTF-16 units, and readers that prune by such bounds miss events.
 */
export function rowGroupColumns(events: readonly SealedEvent[]): ColumnSource[] {
  const salts = events.map(({ salts }) => parsePartTexts(salts, SALT_BYTES * 2))
  const byName: Record<ColumnName, ColumnSource['data']> = {
    seq: BigInt64Array.from(events, ({ seq }) => BigInt(seq)),
    id: textColumn(events.map(({ id }) => id)),
    timestamp: BigInt64Array.from(events, ({ timestampMs }) => BigInt(timestampMs)),
    receivedAt: BigInt64Array.from(events, ({ receivedAtMs }) => BigInt(receivedAtMs)),
    companyId: sharedTextColumn(events.map(({ companyId }) => companyId)),
    workspaceId: sharedTextColumn(events.map(({ workspaceId }) => workspaceId)),
    projectId: sharedTextColumn(events.map(({ projectId }) => projectId)),
    category: sharedTextColumn(events.map(({ category }) => category)),
    action: sharedTextColumn(events.map(({ action }) => action)),
    actor: textColumn(events.map(({ actor }) => actor)),
    resource: textColumn(events.map(({ resource }) => resource)),
    metadata: textColumn(events.map(({ metadata }) => metadata)),
    traceId: textColumn(events.map(({ traceId }) => traceId)),
    actorSalt: saltColumn(events, salts, 'actor'),
    resourceSalt: saltColumn(events, salts, 'resource'),
    metadataSalt: saltColumn(events, salts, 'metadata'),
    sealedErased: textColumn(events.map(erasedCommitments)),
  }
  return COLUMN_NAMES.map((name) => ({
    name,
    data: byName[name],
    // Indexes would be written between the row groups and the footer, where no digest covers them.
    offsetIndex: false,
    ...ENCODINGS[name],
  }))
}

/** Columns where the writer's default, a dictionary if it halves the size, doesn't pay off. */
const ENCODINGS: Partial<Record<ColumnName, { encoding: 'PLAIN' | 'DELTA_BINARY_PACKED' }>> = {
  seq: { encoding: 'DELTA_BINARY_PACKED' },
  id: { encoding: 'PLAIN' },
  actorSalt: { encoding: 'PLAIN' },
  resourceSalt: { encoding: 'PLAIN' },
  metadataSalt: { encoding: 'PLAIN' },
}

/** The values are views of one block, which saves an allocation per value. */
function textColumn(texts: readonly (string | null)[]): (Buffer | null)[] {
  // UTF-8 needs at most three bytes per UTF-16 unit.
  const bytesMax = texts.reduce((sum, text) => sum + 3 * (text?.length ?? 0), 0)
  const block = Buffer.allocUnsafeSlow(bytesMax)
  let end = 0
  return texts.map((text) => {
    if (text === null) return null
    const start = end
    end += block.write(text, start, 'utf8')
    return block.subarray(start, end)
  })
}

/**
 * For columns with few distinct values: one buffer per value, so that the writer
 * can compare buffers by identity.
 */
function sharedTextColumn(texts: readonly (string | null)[]): (Buffer | null)[] {
  const known = new Map<string | null, Buffer | null>([[null, null]])
  return texts.map((text) => {
    let bytes = known.get(text)
    if (bytes === undefined) known.set(text, (bytes = Buffer.from(text ?? '')))
    return bytes
  })
}

function saltColumn(
  events: readonly SealedEvent[],
  salts: readonly (PartTexts | null)[],
  name: PartName,
): (Buffer | null)[] {
  const block = Buffer.allocUnsafeSlow(events.length * SALT_BYTES)
  return events.map((event, index) => {
    const salt = salts[index]?.[name]
    assert((salt === undefined) === (event[name] === null), 'a part has a salt, and no other has')
    if (salt === undefined) return null
    const start = index * SALT_BYTES
    block.write(salt, start, 'hex')
    return block.subarray(start, start + SALT_BYTES)
  })
}

/** The commitments to erased parts, because they can't be recomputed from the rest of the segment. */
function erasedCommitments(event: SealedEvent): string | null {
  if (event.actor !== null && event.metadata !== null && event.resource !== null) return null
  const commitments = parsePartTexts(event.sealed, HASH_HEX_DIGITS)
  assert(commitments !== null, 'sealed is a canonical map')
  const erased: PartTexts = {}
  for (const name of PART_NAMES) {
    const commitment = commitments[name]
    if (event[name] === null && commitment !== undefined) erased[name] = commitment
  }
  const json = partTextsJson(erased)
  return json === '{}' ? null : json
}
