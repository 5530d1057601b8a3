import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fastify } from 'fastify'
import { PAGE_BYTES_MAX } from '../../ledger/event-page.ts'
import { createErrorHandler } from '../error-handler.ts'
import { limitOutput } from './limit-output.ts'
import { OutputBudget } from './output-budget.ts'

const COMPANY_BYTES_MAX = 2 * PAGE_BYTES_MAX
const TOO_LARGE = COMPANY_BYTES_MAX + 1

/** Starts an app whose routes send a company as many bytes as the query requests. */
async function listen() {
  const budget = new OutputBudget({ companyBytesMax: COMPANY_BYTES_MAX, companySmallBytes: 0 })
  const app = fastify()
  app.setErrorHandler(createErrorHandler())
  app.addHook('onRequest', async (request) => {
    Object.assign(request, { key: { companyId: 'a' } })
  })
  limitOutput(app, budget)
  let handled = 0
  app.route<{ Querystring: { bytes: string } }>({
    method: ['GET', 'POST'],
    url: '/large',
    config: { hasLargeResponses: true },
    handler: async ({ query }, reply) => {
      handled += 1
      return await reply.type('application/json').serializer(String).send('1'.repeat(+query.bytes))
    },
  })
  app.post<{ Querystring: { bytes: string } }>('/change', async ({ query }) =>
    '1'.repeat(+query.bytes),
  )
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return {
    budget,
    countHandled: () => handled,
    call: async (method: string, path: string) => {
      const response = await fetch(`${url}${path}`, { method })
      return { status: response.status, text: await response.text() }
    },
    [Symbol.asyncDispose]: () => app.close(),
  }
}

test('rejects a large response that exceeds the budget, with a standard error', async () => {
  await using server = await listen()
  for (const method of ['GET', 'POST']) {
    const { status, text } = await server.call(method, `/large?bytes=${TOO_LARGE}`)
    assert.deepEqual([status, JSON.parse(text).code], [429, 'rate_limited'])
    assert.equal((await server.call(method, `/large?bytes=${PAGE_BYTES_MAX}`)).status, 200)
  }
  assert.equal(server.countHandled(), 4)
})

test('rejects a request for a large response before its handler runs', async () => {
  await using server = await listen()
  const release = server.budget.hold('a', PAGE_BYTES_MAX + 1)
  assert.equal((await server.call('GET', '/large?bytes=1')).status, 429)
  assert.equal((await server.call('HEAD', '/large?bytes=1')).status, 429)
  assert.equal(server.countHandled(), 0)
  release()
  assert.equal((await server.call('GET', '/large?bytes=1')).status, 200)
})

test('responds to a completed change regardless of the size of the response', async () => {
  await using server = await listen()
  const { status, text } = await server.call('POST', `/change?bytes=${TOO_LARGE}`)
  assert.deepEqual([status, text.length], [200, TOO_LARGE])
})

test('does not count the body that a HEAD response omits', async () => {
  await using server = await listen()
  assert.equal((await server.call('HEAD', `/large?bytes=${TOO_LARGE}`)).status, 200)
  assert.equal(server.budget.bytes, 0)
})
