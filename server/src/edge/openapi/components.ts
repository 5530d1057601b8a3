import assert from 'node:assert/strict'
import { NAMED_SCHEMAS } from '../schema/named.ts'
import { isObject, type JsonObject, sortedByName } from './json-object.ts'

/**
 * The schemas of one document. A schema with an `$id` becomes a component of that name, and a reference
 * wherever it is used. Validators never see references: the routes' schemas contain each other.
 */
export class SchemaComponents {
  readonly #used = new Map<string, JsonObject>()

  get all(): JsonObject {
    return sortedByName(this.#used)
  }

  /** Converts a schema of a route to one of the document. */
  convert(source: object): JsonObject {
    const schema: JsonObject = { ...source }
    if (typeof schema.$id !== 'string') return this.#inline(schema)
    const named: JsonObject = { ...NAMED_SCHEMAS.get(schema.$id) }
    assert.equal(shapeOf(schema), shapeOf(named), `two schemas are named ${schema.$id}`)
    if (!this.#used.has(schema.$id)) this.#used.set(schema.$id, this.#inline(named))
    const reference = { $ref: `#/components/schemas/${schema.$id}` }
    const { description } = schema
    return description === named.description ? reference : { ...reference, description }
  }

  #inline(source: JsonObject): JsonObject {
    const { $id: _, anyOf, type = typeOf(source), properties, items, ...rest } = source
    const hasValues = isObject(rest.additionalProperties)
    if (Array.isArray(anyOf)) return this.#union(anyOf, rest)
    const fields = isObject(properties) ? Object.entries(properties) : []
    return {
      ...(type !== undefined && { type }),
      ...rest,
      ...(fields.length > 0 && {
        properties: Object.fromEntries(
          fields.map(([name, field]) => [name, this.convert(objectOf(field))]),
        ),
      }),
      ...(isObject(items) && { items: this.convert(items) }),
      // Without it, code generators give arbitrary data the type of an empty object.
      ...(type === 'object' && fields.length === 0 && !hasValues && { additionalProperties: true }),
    }
  }

  /** A union of null and an unnamed schema becomes that schema with two types. */
  #union(alternatives: readonly unknown[], rest: JsonObject): JsonObject {
    const converted = alternatives.map((alternative) => this.convert(objectOf(alternative)))
    const [value, ...others] = converted.filter(({ type }) => type !== 'null')
    const isNullable = others.length === 0 && converted.length === 2
    if (!isNullable || typeof value?.type !== 'string') return { ...rest, anyOf: converted }
    const { enum: values, ...schema } = value
    const choices = Array.isArray(values) && { enum: [...values, null] }
    return { ...schema, type: [value.type, 'null'], ...choices, ...rest }
  }
}

/** The text of a schema apart from its description, which each use can replace. */
function shapeOf(schema: JsonObject): string {
  return JSON.stringify({ ...schema, description: '' })
}

/** TypeBox gives enums no type. */
function typeOf(schema: JsonObject): string | undefined {
  const [value] = Array.isArray(schema.enum) ? schema.enum : [schema.const]
  return typeof value === 'number' ? 'integer' : value === undefined ? undefined : typeof value
}

function objectOf(value: unknown): JsonObject {
  assert(isObject(value))
  return value
}
