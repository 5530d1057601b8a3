import { hash } from 'node:crypto'
import { parseJson } from '../../platform/json/parse-json.ts'

/** JSON that ends with its own SHA-256, so that a damaged file isn't mistaken for another value. */
export function writeHashedJson(value: object): Buffer {
  const sha256 = hash('sha256', JSON.stringify(value))
  return Buffer.from(`${JSON.stringify({ ...value, sha256 }, null, 1)}\n`)
}

/** If true, `writeHashedJson` wrote it, so there is no need to check its parts one by one. */
export function isHashedJson(text: string): boolean {
  try {
    const { sha256, ...value } = parseJson(text)
    return sha256 === hash('sha256', JSON.stringify(value))
  } catch {
    return false
  }
}
