import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { openapiTexts } from '../../../tools/print-openapi.ts'

/** The schema of what a route accepts, as passed to its validator. */
export type RequestSchema = { route: string; part: 'body' | 'query'; schema: unknown }

/** The schemas of every request body and query, read from the server's routes. */
export async function readRequestSchemas(): Promise<RequestSchema[]> {
  const routes: RouteOptions[] = []
  const watch = (message: unknown) => {
    if (!isCreation(message)) return
    message.fastify.addHook('onRoute', (route) => {
      routes.push(route)
    })
  }
  subscribe('fastify.initialization', watch)
  try {
    await openapiTexts()
  } finally {
    unsubscribe('fastify.initialization', watch)
  }
  return routes
    .filter(({ method }) => method !== 'HEAD')
    .flatMap(({ method, url, schema }) => {
      const route = `${[method].flat().join('|')} ${url}`
      const parts = [
        { route, part: 'body' as const, schema: schema?.body },
        { route, part: 'query' as const, schema: schema?.querystring },
      ]
      return parts.filter((part) => part.schema !== undefined)
    })
}

function isCreation(message: unknown): message is { fastify: FastifyInstance } {
  return typeof message === 'object' && message !== null && 'fastify' in message
}

/** Bodies with a single field that is far larger than its schema allows. */
export function findOversizedTexts(
  schema: unknown,
  bytes: number,
): { field: string; text: string }[] {
  const fields: { field: string; text: string }[] = []
  for (const [field, property] of Object.entries(propertiesOf(schema))) {
    const wrap = (value: string) => ({ field, text: `{${JSON.stringify(field)}:${value}}` })
    for (const choice of alternativesOf(property)) {
      if (choice.type === 'string') fields.push(wrap(`"${'a'.repeat(bytes)}"`))
      if (choice.type === 'array') fields.push(wrap(`[${manyOf(choice.items, bytes)}]`))
      const inner = findOversizedTexts(choice, bytes)
      fields.push(
        ...inner.map(({ field: name, text }) => ({ ...wrap(text), field: `${field}/${name}` })),
      )
    }
  }
  return fields
}

/** Items that are individually valid, as far as the schema tells. */
function manyOf(items: unknown, bytes: number): string {
  const choices = isRecord(items) && Array.isArray(items.enum) ? items.enum : ['a']
  const item = JSON.stringify(choices[0])
  return Array.from({ length: Math.floor(bytes / (item.length + 1)) }, () => item).join(',')
}

function propertiesOf(schema: unknown): Record<string, unknown> {
  return isRecord(schema) && isRecord(schema.properties) ? schema.properties : {}
}

function alternativesOf(schema: unknown): Record<string, unknown>[] {
  if (!isRecord(schema)) return []
  return Array.isArray(schema.anyOf) ? schema.anyOf.filter(isRecord) : [schema]
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
