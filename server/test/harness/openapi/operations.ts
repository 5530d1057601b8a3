import { randomUUID } from 'node:crypto'
import { openapiTexts } from '../../../tools/print-openapi.ts'
import { parseDocument } from './dereference.ts'

/** A documented operation, with ids in its path that don't exist. */
export type KnownOperation = {
  id: string
  method: string
  /** In the router's syntax. */
  pattern: string
  path: string
  /** Dashboard operations require a session, the others a key. */
  isDashboard: boolean
  /** Needs neither a key nor a session. */
  isOpen: boolean
  /** The names of its query parameters. */
  parameters: readonly string[]
}

/** Every operation of both documents, read from the routes. */
export async function readOperations(): Promise<KnownOperation[]> {
  const { v1, dashboard } = await openapiTexts()
  return [...operationsIn(v1, false), ...operationsIn(dashboard, true)]
}

/** Methods with a body. */
export const CHANGES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

type Documented = {
  operationId: string
  security?: readonly object[]
  parameters?: readonly { name: string; in: string }[]
}

function operationsIn(text: string, isDashboard: boolean): KnownOperation[] {
  const { paths }: { paths: Record<string, Record<string, Documented>> } = parseDocument(text)
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, security, parameters = [] }]) => ({
      id: operationId,
      method: method.toUpperCase(),
      pattern: path.replaceAll(/\{(\w+)\}/g, ':$1'),
      path: path.replaceAll(/\{\w+\}/g, () => randomUUID()),
      isDashboard,
      isOpen: security?.length === 0,
      parameters: parameters.filter((known) => known.in === 'query').map(({ name }) => name),
    })),
  )
}
