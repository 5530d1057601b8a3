import { parseJson } from '../../platform/json/parse-json.ts'

/** The object in these bytes, or null if they are not a JSON object. */
export function parseStoredObject(bytes: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = parseJson(bytes.toString())
    return isRecord(value) ? value : null
  } catch {
    return null
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Indented, because an operator may have to read it. */
export function storedJson(value: object): Buffer {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`)
}
