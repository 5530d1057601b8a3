import type { ErrorDetail } from '../errors.ts'
import { escapePointer } from '../platform/json-fault.ts'

type Schema = Record<string, unknown>

/**
 * What in a value is larger than its schema allows, at most `faultsMax` of it. It looks at lengths and
 * names only. A value that passes is bounded by its schema, and with it the cost of anything that is
 * done to it, such as describing what else is wrong.
 */
export function sizeFaults(
  schema: unknown,
  value: unknown,
  { faultsMax, unknownName }: { faultsMax: number; unknownName: string },
): ErrorDetail[] {
  const faults: ErrorDetail[] = []
  collect(schema, value, '', { faults, faultsMax, unknownName })
  return faults
}

type Found = {
  faults: ErrorDetail[]
  faultsMax: number
  /** What is wrong with a name that the schema does not have. */
  unknownName: string
}

function collect(schema: unknown, value: unknown, path: string, found: Found): void {
  if (!isSchema(schema) || found.faults.length >= found.faultsMax) return
  if (Array.isArray(schema.anyOf)) {
    // Of our unions one alternative at most has a size: the others are null or constants.
    for (const alternative of schema.anyOf) collect(alternative, value, path, found)
  } else if (typeof value === 'string') {
    const { maxLength } = schema
    // A length counts code points, and a code point may be two units.
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
  for (const [index, value] of values.entries()) collect(items, value, `${path}/${index}`, found)
}

function collectMembers(
  { properties, additionalProperties }: Schema,
  value: object,
  path: string,
  found: Found,
): void {
  if (!isSchema(properties)) return
  const isStrict = additionalProperties === false
  let unknown = 0
  for (const [name, member] of Object.entries(value)) {
    if (Object.hasOwn(properties, name)) {
      collect(properties[name], member, `${path}/${escapePointer(name)}`, found)
    } else if (isStrict) {
      unknown += 1
    }
  }
  // A few are told together with the other faults.
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
