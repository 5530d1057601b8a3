import type { ErrorDetail } from '../../errors.ts'
import { escapePointer } from '../../platform/json/json-fault.ts'

type Schema = Record<string, unknown>

/**
 * Lists the parts of a value that are larger than its schema allows, up to `faultsMax`. It checks only
 * lengths and names. A value that passes is bounded by its schema, and so is the cost of processing it, such
 * as reporting other errors.
 */
export function sizeFaults(
  schema: unknown,
  value: unknown,
  { faultsMax, unknownName }: { faultsMax: number; unknownName: string },
): ErrorDetail[] {
  const faults: ErrorDetail[] = []
  collectSizeFaults(schema, value, '', { faults, faultsMax, unknownName })
  return faults
}

type Found = {
  faults: ErrorDetail[]
  faultsMax: number
  /** The message for a name that the schema doesn't have. */
  unknownName: string
}

function collectSizeFaults(schema: unknown, value: unknown, path: string, found: Found): void {
  if (!isSchema(schema) || found.faults.length >= found.faultsMax) return
  if (Array.isArray(schema.anyOf)) {
    // In our unions, at most one alternative has a size: the others are null or constants.
    for (const alternative of schema.anyOf) collectSizeFaults(alternative, value, path, found)
  } else if (typeof value === 'string') {
    const { maxLength } = schema
    // `maxLength` counts code points, and a code point can be two UTF-16 units.
    if (typeof maxLength === 'number' && value.length > 2 * maxLength) {
      found.faults.push({ path, message: `must not have more than ${maxLength} characters` })
    }
  } else if (Array.isArray(value)) {
    collectItems(schema, value, path, found)
  } else if (typeof value === 'object' && value !== null) {
    collectMembers(schema, value, path, found)
  }
}

function collectItems(
  { maxItems, items }: Schema,
  values: readonly unknown[],
  path: string,
  found: Found,
): void {
  if (typeof maxItems !== 'number') return
  if (values.length > maxItems) {
    found.faults.push({ path, message: `must not have more than ${maxItems} items` })
    return
  }
  for (const [index, value] of values.entries())
    collectSizeFaults(items, value, `${path}/${index}`, found)
}

function collectMembers(
  { properties, additionalProperties, maxProperties }: Schema,
  value: object,
  path: string,
  found: Found,
): void {
  if (!isSchema(properties)) return
  const members = Object.entries(value)
  if (typeof maxProperties === 'number' && members.length > maxProperties) {
    found.faults.push({ path, message: `must not have more than ${maxProperties} fields` })
    return
  }
  const isStrict = additionalProperties === false
  let unknown = 0
  for (const [name, member] of members) {
    if (Object.hasOwn(properties, name)) {
      collectSizeFaults(properties[name], member, `${path}/${escapePointer(name)}`, found)
    } else if (isStrict) {
      unknown += 1
    } else {
      collectSizeFaults(additionalProperties, member, `${path}/${escapePointer(name)}`, found)
    }
  }
  // A few unknown fields are reported later, together with other errors.
  if (unknown <= found.faultsMax) return
  for (const name of Object.keys(value)) {
    if (found.faults.length >= found.faultsMax) return
    if (Object.hasOwn(properties, name)) continue
    found.faults.push({ path: `${path}/${escapePointer(name)}`, message: found.unknownName })
  }
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null
}
