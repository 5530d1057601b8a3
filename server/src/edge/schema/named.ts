import assert from 'node:assert/strict'
import type { TSchema } from 'typebox'

const schemas = new Map<string, object>()

/** The schemas that the OpenAPI documents refer to by name. */
export const NAMED_SCHEMAS: ReadonlyMap<string, object> = schemas

/**
 * Gives a schema a name, as its `$id`. In the OpenAPI documents it becomes a component, and each use of it a
 * reference. A use can have a description of its own: `{ ...Schema, description: '…' }`.
 */
export function named<T extends TSchema>(name: string, schema: T): T {
  assert(!schemas.has(name), `two schemas are named ${name}`)
  const result = Object.assign(schema, { $id: name })
  schemas.set(name, result)
  return result
}
