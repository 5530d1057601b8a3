import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { newId } from '../../src/platform/id.ts'
import { parseDocument } from '../harness/openapi/dereference.ts'

/** The parts of an operation that a hostile client uses. */
export type Route = {
  method: string
  path: string
  /** Names of its query parameters and of the top-level fields of its body. */
  parameters: readonly string[]
  fields: readonly string[]
}

type Schema = { properties?: Record<string, unknown>; anyOf?: readonly Schema[] }
type Operation = {
  parameters?: readonly { name: string; in: string }[]
  requestBody?: { content: { 'application/json'?: { schema: Schema } } }
}
type Document = { paths: Record<string, Record<string, Operation>> }

/** Every operation of the public API and of the dashboard, read from the committed documents. */
export function everyRoute(): Route[] {
  return ['v1', 'dashboard'].flatMap((name) => {
    const file = join(import.meta.dirname, `../../../openapi/${name}.json`)
    const { paths }: Document = parseDocument(readFileSync(file, 'utf8'))
    return Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        parameters: (operation.parameters ?? [])
          .filter((parameter) => parameter.in === 'query')
          .map((parameter) => parameter.name),
        fields: fieldsOf(operation.requestBody?.content['application/json']?.schema ?? {}),
      })),
    )
  })
}

function fieldsOf({ properties = {}, anyOf = [] }: Schema): string[] {
  return [...new Set([...Object.keys(properties), ...anyOf.flatMap(fieldsOf)])]
}

/** The path with ids that don't exist, or with `id` in place of each. */
export function pathOf({ path }: Route, id?: string): string {
  return path.replaceAll(/\{\w+\}/g, () => id ?? newId())
}
