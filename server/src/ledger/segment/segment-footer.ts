import assert from 'node:assert/strict'
import { createHash, hash } from 'node:crypto'

import type { KeyValue } from 'hyparquet'

import { assertId, type WorkspaceId } from '../../platform/id.ts'
import { parseJson } from '../../platform/json/parse-json.ts'
import { HASH_HEX_DIGITS } from './segment-columns.ts'

/** The position of a row group in the chain and in the file, so that a reader can start at any group. */
export type RowGroupRange = {
  firstSeq: number
  rows: number
  prevHash: string
  bytes: number
  /** SHA-256 of the group's bytes. */
  digest: string
}

/** The metadata of a segment in the key-value entries of its Parquet footer. */
export type SegmentFooter = {
  workspaceId: WorkspaceId
  firstSeq: number
  lastSeq: number
  firstPrevHash: string
  lastHash: string
  rowGroups: RowGroupRange[]
}

const VERSION = '1'
const DIGEST_KEY = 'annals.digest'
const DIGEST_UNSET = '0'.repeat(HASH_HEX_DIGITS)

export function footerEntries(footer: SegmentFooter): KeyValue[] {
  return [
    { key: 'annals.version', value: VERSION },
    { key: 'annals.workspaceId', value: footer.workspaceId },
    { key: 'annals.firstSeq', value: String(footer.firstSeq) },
    { key: 'annals.lastSeq', value: String(footer.lastSeq) },
    { key: 'annals.firstPrevHash', value: footer.firstPrevHash },
    { key: 'annals.lastHash', value: footer.lastHash },
    { key: 'annals.rowGroups', value: JSON.stringify(footer.rowGroups) },
    // Must be the last entry: `digestOffset` searches for it from the end of the file.
    { key: DIGEST_KEY, value: DIGEST_UNSET },
  ]
}

/** Asserts the format that `footerEntries` writes. The reader reports a failure as a damaged segment. */
export function parseFooter(entries: readonly KeyValue[]): SegmentFooter {
  const values = new Map(entries.map(({ key, value }) => [key, value ?? '']))
  const valueOf = (name: string): string => values.get(`annals.${name}`) ?? ''
  assert.equal(valueOf('version'), VERSION, 'the footer is of a version that is known')
  const footer = {
    workspaceId: assertId<'workspace'>(valueOf('workspaceId')),
    firstSeq: Number(valueOf('firstSeq')),
    lastSeq: Number(valueOf('lastSeq')),
    firstPrevHash: valueOf('firstPrevHash'),
    lastHash: valueOf('lastHash'),
    rowGroups: parseRowGroups(valueOf('rowGroups')),
  }
  let nextSeq = footer.firstSeq
  for (const { firstSeq, rows } of footer.rowGroups) {
    assert.equal(firstSeq, nextSeq, 'the row groups follow each other')
    nextSeq += rows
  }
  assert.equal(nextSeq, footer.lastSeq + 1, 'the row groups end with the segment')
  assert.equal(footer.rowGroups[0]?.prevHash, footer.firstPrevHash, 'both first hashes are one')
  return footer
}

function parseRowGroups(json: string): RowGroupRange[] {
  const ranges: unknown = parseJson(json)
  assert(
    Array.isArray(ranges) && ranges.every(isRowGroupRange),
    'each row group has a range in the chain',
  )
  return ranges
}

function isRowGroupRange(value: unknown): value is RowGroupRange {
  if (typeof value !== 'object' || value === null) return false
  const range: Partial<Record<string, unknown>> = { ...value }
  return (
    ['firstSeq', 'rows', 'bytes'].every((name) => isCount(range[name])) &&
    ['prevHash', 'digest'].every((name) => typeof range[name] === 'string')
  )
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) > 0
}

/** The first bytes of a Parquet file, and also its last ones, after the length of the footer. */
export const MAGIC = 'PAR1'
const LENGTH_BYTES = 4

/**
 * Writes the footer's digest into the footer: the SHA-256 of its bytes with zeros in place of the digest.
 * The chain covers the content of the events. The digests cover the rest, such as statistics that readers
 * use to skip rows, and keep corrupt bytes from the Parquet reader, which trusts the lengths it reads. They
 * protect against accidents; the chain protects against forgery.
 */
export function writeFooterDigest(file: Buffer): void {
  const footer = footerOf(file)
  const at = footer === null ? null : digestOffset(footer)
  assert(footer !== null && at !== null, 'a segment has room for its digest')
  footer.write(digestOf(footer, at), at, 'latin1')
}

/** The bytes from the footer to the end of the file, or null if they don't match their digest. */
function checkedFooterOf(file: Buffer): Buffer | null {
  const footer = footerOf(file)
  return footer !== null && matchesDigest(footer) ? footer : null
}

export function matchesDigest(footer: Buffer): boolean {
  const at = digestOffset(footer)
  return at !== null && footer.toString('latin1', at, at + HASH_HEX_DIGITS) === digestOf(footer, at)
}

/**
 * The hash that the catalog stores, so that the footer, and through it each row
 * group, can be verified separately.
 */
export function footerSha256Of(file: Buffer): string {
  const footer = checkedFooterOf(file)
  assert(footer !== null, 'a segment has a footer with its digest')
  return hash('sha256', footer, 'hex')
}

function footerOf(file: Buffer): Buffer | null {
  const bytes = footerBytesOf(file)
  return bytes === null || bytes > file.length - MAGIC.length ? null : file.subarray(-bytes)
}

/**
 * The size of the footer up to the end of the file, read from the last bytes;
 * null if there are too few bytes.
 */
export function footerBytesOf(end: Buffer): number | null {
  const lengthAt = end.length - MAGIC.length - LENGTH_BYTES
  return lengthAt < 0 ? null : end.readUInt32LE(lengthAt) + LENGTH_BYTES + MAGIC.length
}

/** Thrift has two bytes between key and value: the field number and the length. */
function digestOffset(footer: Buffer): number | null {
  const keyAt = footer.lastIndexOf(DIGEST_KEY)
  const at = keyAt + DIGEST_KEY.length + 2
  return keyAt === -1 || at + HASH_HEX_DIGITS > footer.length ? null : at
}

function digestOf(footer: Buffer, at: number): string {
  return createHash('sha256')
    .update(footer.subarray(0, at))
    .update(DIGEST_UNSET)
    .update(footer.subarray(at + HASH_HEX_DIGITS))
    .digest('hex')
}
