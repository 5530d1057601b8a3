import assert from 'node:assert/strict'
import { openapiTexts } from '../../../tools/print-openapi.ts'
import { assertDocumented, walk, type Walked } from '../../contract/driver.ts'
import type { Member } from '../dashboard/dashboard.ts'

/**
 * A member whose responses are all compared with the dashboard's document: the status, the code and
 * the whole body must match the operation.
 */
export async function documented(member: Member): Promise<Member> {
  const routes = await (operations ??= readOperations())
  return {
    ...member,
    call: async (method, path, options) => {
      const response = await member.call(method, path, options)
      const route = routes.find((known) => known.method === method && known.pattern.test(path))
      assert(route, `${method} ${path} is not documented`)
      assertDocumented(route, response)
      return response
    },
  }
}

type Route = Walked & { pattern: RegExp }

let operations: Promise<Route[]> | null = null

/** Paths with fewer parameters come first. */
async function readOperations(): Promise<Route[]> {
  const { dashboard } = await openapiTexts()
  return walk(JSON.parse(dashboard))
    .map((operation) => ({ ...operation, pattern: patternOf(operation.path) }))
    .toSorted((a, b) => a.path.split('{').length - b.path.split('{').length)
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/?]+')}(\\?.*)?$`)
}
