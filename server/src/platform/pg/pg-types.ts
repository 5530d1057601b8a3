import assert from 'node:assert/strict'
import { types as pgTypes } from 'pg'

type Parser = (text: string) => unknown

const INT8_OID = 20
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

const PARSERS: ReadonlyMap<number, Parser> = new Map([
  [INT8_OID, parseInt8],
  ...Object.values(DATE_OIDS).map((oid) => [oid, strictDateParser(oid)] as const),
])

/** How the pools parse values. */
export const typeParsers = {
  getTypeParser: (oid: number, format?: 'text' | 'binary'): Parser =>
    PARSERS.get(oid) ?? pgTypes.getTypeParser(oid, format),
}
