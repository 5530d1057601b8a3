import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type, type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { registerFormats } from '../../src/edge/schema/formats.ts'
import { dereference } from '../harness/openapi/dereference.ts'
import type { TestResponse } from '../harness/app/start-app.ts'
import type { World } from './world.ts'

/** One request that leads to a documented status. */
export type Case = {
  status: number
  /** When the operation responds like this, in one sentence. */
  when: string
  /** For errors: the expected code. */
  code?: string
  /** Null if the deployment under test can't show this. */
  send: (world: World) => Promise<TestResponse> | null
}

/** The cases of an operation, and a body or query that is valid except for the tenant of its ids. */
export type OperationCases = { cases: readonly Case[]; body?: unknown; query?: string }

/** The part of OpenAPI that the driver walks. */
const Operation = Type.Object({
  operationId: Type.String(),
  parameters: Type.Optional(
    Type.Array(Type.Object({ name: Type.String(), in: Type.String(), schema: Type.Object({}) })),
  ),
  responses: Type.Record(
    Type.String(),
    Type.Object({
      description: Type.String(),
      headers: Type.Optional(
        Type.Record(Type.String(), Type.Object({ required: Type.Optional(Type.Boolean()) })),
      ),
      content: Type.Optional(
        Type.Record(
          Type.String(),
          Type.Object({
            schema: Type.Optional(Type.Object({})),
            'x-columns': Type.Optional(Type.Array(Type.String())),
          }),
        ),
      ),
    }),
  ),
})
const Document = Type.Object({
  components: Type.Object({
    schemas: Type.Record(
      Type.String(),
      Type.Object({ properties: Type.Optional(Type.Object({})) }),
    ),
  }),
  paths: Type.Record(Type.String(), Type.Record(Type.String(), Operation)),
})

export type Walked = Static<typeof Operation> & { method: string; path: string }

const COMMITTED = join(import.meta.dirname, '../../../openapi/v1.json')

export function readCommitted(): unknown {
  return JSON.parse(readFileSync(COMMITTED, 'utf8'))
}

/** Every operation of the document, in document order. */
export function walk(document: unknown): Walked[] {
  registerFormats()
  const { paths } = Compile(Document).Parse(dereference(document))
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  )
}

/** A named schema of the document, for JSON inside a text body. */
export function findComponent(document: unknown, name: string): { properties: object } {
  const schema = Compile(Document).Parse(dereference(document)).components.schemas[name]
  assert(schema?.properties, `${name} is not documented`)
  return { ...schema, properties: schema.properties }
}

/** Documented statuses without a case, and cases that are not documented. */
export function findCoverageGaps(
  operations: readonly Walked[],
  cases: Readonly<Record<string, OperationCases>>,
): string[] {
  const documented = new Set(
    operations.flatMap(({ operationId, responses }) =>
      Object.keys(responses).map((status) => `${operationId} ${status}`),
    ),
  )
  const covered = new Set(
    Object.entries(cases).flatMap(([operationId, { cases: own }]) =>
      own.map(({ status }) => `${operationId} ${status}`),
    ),
  )
  return [
    ...[...documented.difference(covered)].map((name) => `${name} has no case`),
    ...[...covered.difference(documented)].map((name) => `${name} is not documented`),
  ]
}

/** The response headers that every client can read. */
const OWN_HEADERS =
  /^(x-trace-id|x-hot-since|x-idempoten.*|x-service-.*|ratelimit-.*|retry-after|www-authenticate)$/

function assertHeaders(
  documented: Readonly<Record<string, { required?: boolean }>>,
  { headers }: TestResponse,
  about: string,
): void {
  const names = new Set(Object.keys(documented).map((name) => name.toLowerCase()))
  const undocumented = [...headers.keys()].filter(
    (name) => OWN_HEADERS.test(name) && !names.has(name),
  )
  assert.deepEqual(undocumented, [], about)
  const missing = Object.entries(documented).filter(
    ([name, { required }]) => required && !headers.has(name),
  )
  assert.deepEqual(missing, [], about)
}

/** The response matches what the document says about this operation and status. */
export function assertDocumented({ operationId, responses }: Walked, response: TestResponse): void {
  const about = `${operationId} returned ${response.status}: ${response.text.slice(0, 500)}`
  const documented = responses[String(response.status)]
  assert(documented, `not documented: ${about}`)
  assertHeaders(documented.headers ?? {}, response, about)
  if (documented.content === undefined) {
    assert.equal(response.text, '', about)
    return
  }
  const type = response.headers.get('content-type')?.split(';', 1)[0] ?? ''
  const { schema } = documented.content[type] ?? {}
  assert(schema, `${type} is not documented: ${about}`)
  const isJson = type === 'application/json'
  assert.deepEqual(Compile(schema).Errors(isJson ? response.json : response.text), [], about)
  if (response.status >= 400) {
    assert(
      documented.description.includes(`\`${response.json.code}\``),
      `undocumented code: ${about}`,
    )
    assert.equal(response.headers.get('x-trace-id'), response.json.traceId)
  }
}
