import assert from 'node:assert/strict'
import { type Permission, POLICY } from '../../tenancy/policy.ts'
import type { Gate } from '../auth/gate.ts'
import type { SchemaComponents } from './components.ts'
import { exampleOf } from './examples.ts'
import { errorResponses } from './error-responses.ts'
import { isObject, type JsonObject } from './json-object.ts'
import { headersOf } from './response-headers.ts'
import type { DocumentedRoute } from './route.ts'

const JSON_TYPE = 'application/json'

/** Describes a route as an OpenAPI operation. */
export function operationOf(route: DocumentedRoute, components: SchemaComponents): JsonObject {
  const { operationId, summary, tags, security, body } = route.schema
  const parameters = parametersOf(route, components)
  return {
    operationId,
    summary,
    description: descriptionOf(route),
    tags,
    ...(route.gate && { 'x-required': requiredOf(route.gate) }),
    ...(route.permission && { 'x-permission': route.permission }),
    ...(security && { security }),
    ...(parameters.length > 0 && { parameters }),
    ...(isObject(body) && {
      requestBody: {
        ...(!route.isBodyOptional && { required: true }),
        content: { [JSON_TYPE]: mediaOf(body, components) },
      },
    }),
    responses: { ...successResponses(route, components), ...errorResponses(route) },
  }
}

function descriptionOf({ schema, gate, permission }: DocumentedRoute): string {
  const requirement = gate ? gateText(gate) : permission ? permissionText(permission) : ''
  return [schema.description, requirement].filter(Boolean).join('\n\n')
}

function requiredOf({ scope, permission, allowlist, plan, dashboardOnly }: Gate): JsonObject {
  return {
    scope: scope ?? null,
    permission,
    allowlist: allowlist ?? false,
    plan: plan ?? null,
    ...(dashboardOnly && { dashboardOnly }),
  }
}

function gateText({ scope, permission, allowlist, plan, dashboardOnly }: Gate): string {
  if (dashboardOnly) return 'No key can call this operation.'
  const needs = [
    scope ? `a ${scope.toLowerCase()} key` : 'a valid key of either scope',
    ...(permission === null ? [] : [`the \`${permission}\` permission`]),
    ...(allowlist ? ['a caller whose address is on the IP allowlist'] : []),
    ...(plan ? [`the ${plan} plan or higher`] : []),
  ]
  return `Requires ${new Intl.ListFormat('en').format(needs)}.`
}

function permissionText(permission: Permission): string {
  const roles = new Intl.ListFormat('en', { type: 'disjunction' }).format(POLICY[permission])
  return `Requires the \`${permission}\` permission (${roles}).`
}

function parametersOf(
  { url, schema }: DocumentedRoute,
  components: SchemaComponents,
): JsonObject[] {
  const described = new Map(fieldsOf(schema.params).map(({ name, field }) => [name, field]))
  const ids = [...url.matchAll(/:(\w+)|\*/g)].map(([text, name = text]) =>
    pathParameter(name, described.get(name)),
  )
  return [
    ...ids,
    ...fieldsOf(schema.querystring).map((field) => parameterOf('query', field, components)),
    ...fieldsOf(schema.headers).map((field) => parameterOf('header', field, components)),
  ]
}

/** The name of the rest of a path, which the router calls `*`. */
export const REST_OF_PATH = 'tile'

function pathParameter(name: string, field: JsonObject | undefined): JsonObject {
  if (field?.description === undefined) return idParameter(name)
  const { description } = field
  const documented = name === '*' ? REST_OF_PATH : name
  return { name: documented, in: 'path', required: true, description, schema: { type: 'string' } }
}

/** Routes accept any text as an ID, because an ID that isn't a UUID is unknown like any other. */
function idParameter(name: string): JsonObject {
  const noun = name.replace(/Id$/, '').replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return {
    name,
    in: 'path',
    required: true,
    description: `The ID of the ${noun}.`,
    schema: { type: 'string', format: 'uuid' },
  }
}

type Field = { name: string; field: JsonObject; isRequired: boolean }

function fieldsOf(schema: unknown): Field[] {
  if (!isObject(schema) || !isObject(schema.properties)) return []
  const required = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(schema.properties).map(([name, field]) => {
    assert(isObject(field))
    return { name, field, isRequired: required.includes(name) }
  })
}

function parameterOf(
  location: 'query' | 'header',
  { name, field, isRequired }: Field,
  components: SchemaComponents,
): JsonObject {
  const { description: _, ...schema } = components.convert(field)
  return {
    name,
    in: location,
    ...(isRequired && { required: true }),
    description: field.description,
    ...(schema.type === 'object' ? memberParameters(name, schema) : { schema }),
  }
}

/** An object parameter such as `metadata` stands for parameters such as `metadata.ip`. */
function memberParameters(name: string, schema: JsonObject): JsonObject {
  const propertyNames = { pattern: `^${name}\\.` }
  return { style: 'form', explode: true, schema: { ...schema, propertyNames } }
}

function successResponses(
  { schema: { operationId, produces, response }, gate }: DocumentedRoute,
  components: SchemaComponents,
): JsonObject {
  const entries = isObject(response) ? Object.entries(response) : []
  return Object.fromEntries(
    entries.map(([status, schema]) => {
      assert(isObject(schema))
      const shared = headersOf(Number(status), gate !== undefined, operationId)
      const { description = 'Success.', headers, content } = schema
      const result = { description, headers: { ...shared, ...(isObject(headers) && headers) } }
      if (schema.type === 'null') return [status, result]
      if (isObject(content)) {
        return [status, { ...result, content: convertContent(content, components) }]
      }
      return [
        status,
        { ...result, content: { [produces ?? JSON_TYPE]: mediaOf(schema, components) } },
      ]
    }),
  )
}

/** A response with several content types. Those with a named schema have its example. */
function convertContent(content: JsonObject, components: SchemaComponents): JsonObject {
  return Object.fromEntries(
    Object.entries(content).map(([type, media]) => {
      assert(isObject(media))
      const { schema } = media
      const isNamed = isObject(schema) && typeof schema.$id === 'string'
      return [type, isNamed ? { ...media, ...mediaOf(schema, components) } : media]
    }),
  )
}

function mediaOf(schema: JsonObject, components: SchemaComponents): JsonObject {
  // The response has the description.
  const { description: _, ...converted } = components.convert(schema)
  return { schema: converted, ...exampleOf(schema) }
}
