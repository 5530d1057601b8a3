import { hash } from 'node:crypto'
import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { parseJson } from '../../platform/json/parse-json.ts'

/** JSON that ends with its own SHA-256, so that a damaged file isn't mistaken for another value. */
export function writeHashedJson(value: object): Buffer {
  const sha256 = hash('sha256', JSON.stringify(value))
  return Buffer.from(`${JSON.stringify({ ...value, sha256 }, null, 1)}\n`)
}

/** Null if it doesn't match its SHA-256. That shows damage, but anyone can compute it again. */
export function readHashedJson(text: string): object | null {
  try {
    const { sha256, ...value } = parseJson(text)
    return sha256 === hash('sha256', JSON.stringify(value)) ? value : null
  } catch {
    return null
  }
}

/** Creates a function that returns the path of the first part that doesn't match the schema. */
export function createChecker<const T extends TSchema>(
  schema: T,
): (value: unknown) => { value: Static<T> } | { wrongPath: string } {
  const validator = Compile(schema)
  return (value) => {
    if (validator.Check(value)) return { value }
    return { wrongPath: validator.Errors(value)[0]?.instancePath ?? '' }
  }
}
