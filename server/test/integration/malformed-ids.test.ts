import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const OPENAPI = join(import.meta.dirname, '../../../openapi')
const MALFORMED = ['no-id', '%00', 'x%2Fy', '0'.repeat(99)]
const NO_UTF8 = ['%zz', '%', '%ED%A0%80', '%ff', '%C0%AF']

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const company = await annals.createCompany()
const owner = await signInAs(annals, company, 'OWNER')

const CALLERS = {
  v1: (method: string, path: string) => annals.call(method, path, { key: company.companyKey }),
  dashboard: (method: string, path: string) => owner.call(method, path),
}

/** Everything but the trace id, which differs in every response. */
const comparable = ({ status, text, headers, json }: TestResponse) => ({
  status,
  body: text.replaceAll(json.traceId, 'trace'),
  headers: [...headers].filter(([name]) => name !== 'x-trace-id' && name !== 'date'),
})

for (const [document, call] of Object.entries(CALLERS)) {
  test(`in ${document}, a malformed id gets the same response as an unknown one, and invalid bytes get a 400, on every route`, async () => {
    const operations = listOperations(document).filter(({ path }) => path.includes('{'))
    assert(operations.length > 10)
    for (const { method, path, query } of operations) {
      const ask = (id: string) => call(method, path.replaceAll(/\{\w+\}/g, id) + query)
      const unknown = comparable(await ask(newId()))
      if (method === 'GET') assert.equal(unknown.status, 404)
      for (const id of MALFORMED) {
        assert.deepEqual(comparable(await ask(id)), unknown, `${method} ${path} with ${id}`)
      }
      for (const id of NO_UTF8) {
        const { status, json } = await ask(id)
        const actual = [status, json.code, json.error]
        const wanted = [400, 'invalid_request', 'The URL is not percent-encoded UTF-8.']
        assert.deepEqual(actual, wanted, `${method} ${path} with ${id}`)
      }
    }
  })
}

type Parameter = { in: string; name: string; required?: boolean }
type Described = { parameters?: Parameter[] }

/** With the query parameters that they require. */
function listOperations(document: string): { method: string; path: string; query: string }[] {
  const { paths }: { paths: Record<string, Record<string, Described>> } = JSON.parse(
    readFileSync(join(OPENAPI, `${document}.json`), 'utf8'),
  )
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [] }]) => {
      const required = parameters.filter((one) => one.in === 'query' && one.required === true)
      const query = required.map(({ name }) => `${name}=0`).join('&')
      return { method: method.toUpperCase(), path, query: query && `?${query}` }
    }),
  )
}
