import assert from 'node:assert/strict'
import type { FastifyInstance } from 'fastify'
import { readAbsentBody } from '../http/no-body.ts'
import { ExportRow, ExportStub } from '../schema/export-file.ts'
import { SchemaComponents } from './components.ts'
import { errorCodesOf, sharedErrorResponses } from './error-responses.ts'
import { DASHBOARD_INTRODUCTION, V1_INTRODUCTION } from './introduction.ts'
import { isObject, type JsonObject, sortedByName } from './json-object.ts'
import { operationOf, REST_OF_PATH } from './operation.ts'
import { sharedHeaders } from './response-headers.ts'
import type { DocumentedRoute } from './route.ts'
import { webhookRequests } from './webhook-requests.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Builds an OpenAPI document: the API's or the dashboard's. Call it when all routes are registered. */
    describeRoutes: (document: 'v1' | 'dashboard') => JsonObject
  }
}

/** Collects every route with an `operationId`. Call it before registering the routes. */
export function collectRoutes(app: FastifyInstance): void {
  const routes: DocumentedRoute[] = []
  app.addHook('onRoute', ({ method, url, schema, config, preValidation }) => {
    if (typeof method !== 'string' || method === 'HEAD' || schema?.operationId === undefined) return
    const { operationId } = schema
    routes.push({
      method,
      url,
      schema: { ...schema, operationId },
      gate: config?.gate,
      permission: config?.permission,
      isBodyOptional: [preValidation].flat().some((hook) => hook === readAbsentBody),
    })
  })
  app.decorate('describeRoutes', (document) =>
    documentOf(
      routes.filter(({ url }) => url.startsWith('/dashboard/') === (document === 'dashboard')),
      document === 'dashboard' ? DASHBOARD_INTRODUCTION : V1_INTRODUCTION,
    ),
  )
}

type Introduction = typeof V1_INTRODUCTION | typeof DASHBOARD_INTRODUCTION

function documentOf(routes: readonly DocumentedRoute[], introduction: Introduction): JsonObject {
  const components = new SchemaComponents()
  const isKeyed = introduction === V1_INTRODUCTION
  // The formats of a line in a download, which is text to OpenAPI.
  components.convert(ExportRow)
  components.convert(ExportStub)
  const operations = routes.map((route) => operationOf(route, components))
  const parameters = shareParameters(operations)
  const responses = sharedErrorResponses(new Set(routes.flatMap(errorCodesOf)), isKeyed, components)
  const paths = pathsOf(routes, operations)
  const webhooks = isKeyed ? webhookRequests(components) : null
  const { securitySchemes, ...head } = introduction
  return {
    openapi: '3.1.0',
    ...head,
    paths,
    ...(webhooks && { webhooks }),
    components: {
      securitySchemes,
      parameters,
      headers: sharedHeaders(JSON.stringify({ paths, responses })),
      responses,
      schemas: components.all,
    },
  }
}

function pathsOf(
  routes: readonly DocumentedRoute[],
  operations: readonly JsonObject[],
): JsonObject {
  const paths: Record<string, JsonObject> = {}
  for (const [index, { method, url }] of routes.entries()) {
    const path = url.replaceAll(/:(\w+)/g, '{$1}').replace('*', `{${REST_OF_PATH}}`)
    paths[path] = { ...paths[path], [method.toLowerCase()]: operations[index] }
  }
  return paths
}

/**
 * Moves parameters that several operations have to `components.parameters`. Of parameters with the same name,
 * only the most frequent is shared.
 */
function shareParameters(operations: readonly JsonObject[]): JsonObject {
  const uses = operations.flatMap(({ parameters }) => (Array.isArray(parameters) ? parameters : []))
  const byText = Map.groupBy(uses, (parameter) => JSON.stringify(parameter))
  const shared = new Map<string, { text: string; parameter: JsonObject; count: number }>()
  for (const [text, [parameter, ...others]] of byText) {
    assert(isObject(parameter) && typeof parameter.name === 'string')
    const count = others.length
    if (count > (shared.get(parameter.name)?.count ?? 0)) {
      shared.set(parameter.name, { text, parameter, count })
    }
  }
  for (const operation of operations) {
    if (!Array.isArray(operation.parameters)) continue
    operation.parameters = operation.parameters.map((parameter) =>
      shared.get(parameter.name)?.text === JSON.stringify(parameter)
        ? { $ref: `#/components/parameters/${parameter.name}` }
        : parameter,
    )
  }
  return sortedByName([...shared].map(([name, { parameter }]) => [name, parameter]))
}
