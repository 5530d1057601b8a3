import assert from 'node:assert/strict'
import { types as pgTypes } from 'pg'
import { parseJson } from '../json/parse-json.ts'

type Parser = (text: string) => unknown

const INT8_OID = 20
const JSON_OIDS = { json: 114, jsonb: 3802 } as const
const JSON_ARRAY_OIDS = { json: 199, jsonb: 3807 } as const
const TEXT_ARRAY_OID: number = 1009
const UUID_ARRAY_OID: number = 2951
const DATE_OIDS = { date: 1082, timestamp: 1114, timestamptz: 1184 } as const

/** All our bigint columns fit a number. One that doesn't means a corrupt table. */
function parseInt8(text: string): number {
  const value = Number(text)
  assert(Number.isSafeInteger(value), 'a bigint of ours fits a number')
  return value
}

const ISO_DATE = /^\d{4,}-\d\d-\d\d/

/**
 * `pg` reads a date that isn't in ISO style as null, and null means that a key was never revoked and
 * doesn't expire. So a date that can't be parsed fails its query.
 */
function strictDateParser(oid: number): Parser {
  const parse: Parser = pgTypes.getTypeParser(oid)
  return (text) => {
    const date = ISO_DATE.test(text) ? parse(text) : null
    if (date instanceof Date && !Number.isNaN(date.getTime())) return date
    throw new Error(`the database returned "${text}", which is not a date in ISO style`)
  }
}

/** Arrays can have several dimensions. */
type Texts = string | null | Texts[]
const parseTexts: (text: string) => Texts = pgTypes.getTypeParser(TEXT_ARRAY_OID)

function parseItems(texts: Texts): unknown {
  if (Array.isArray(texts)) return texts.map(parseItems)
  return texts === null ? null : parseJson(texts)
}

/** `pg` uses `JSON.parse`. */
const JSON_PARSERS: ReadonlyMap<number, Parser> = new Map<number, Parser>([
  ...Object.values(JSON_OIDS).map((oid) => [oid, parseJson] as const),
  ...Object.values(JSON_ARRAY_OIDS).map(
    (oid) => [oid, (text: string) => parseItems(parseTexts(text))] as const,
  ),
])

const parseAnyUuids: Parser = pgTypes.getTypeParser(UUID_ARRAY_OID)

/** `pg` reads an array character by character, which takes 50 times longer. */
function parseUuids(text: string): unknown {
  if (text === '{}') return []
  const isPlain = text.lastIndexOf('{') === 0 && !text.includes('NULL')
  return isPlain ? text.slice(1, -1).split(',') : parseAnyUuids(text)
}

const POOL_PARSERS: ReadonlyMap<number, Parser> = new Map([
  ...JSON_PARSERS,
  [INT8_OID, parseInt8],
  [UUID_ARRAY_OID, parseUuids],
  ...Object.values(DATE_OIDS).map((oid) => [oid, strictDateParser(oid)] as const),
])

function createTypes(parsers: ReadonlyMap<number, Parser>) {
  return {
    getTypeParser: (oid: number, format?: 'text' | 'binary'): Parser =>
      parsers.get(oid) ?? pgTypes.getTypeParser(oid, format),
  }
}

/** How connections outside of the pools parse values. */
export const sessionTypes = createTypes(JSON_PARSERS)

/** How the pools parse values. */
export const poolTypes = createTypes(POOL_PARSERS)
