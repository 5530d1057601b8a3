import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import fastify from 'fastify'
import { RawConnection } from '../../../test/harness/http/raw-http.ts'
import { BodyBudget } from './body-budget.ts'
import { parseJsonBodies } from './json-body.ts'

test('a client that disconnects before its body is read uses none of the budget', async () => {
  await using app = fastify()
  const bodyBudget = new BodyBudget({ callerBodiesMax: 1 })
  parseJsonBodies(app, { bodyBudget, anonymousBodyMs: 60_000 })
  const disconnected = Promise.withResolvers<void>()
  app.addHook('onRequest', async ({ raw }) => {
    if (raw.url !== '/gone') return
    // `once` would also listen for errors, and then the request would still emit one.
    raw.on('close', disconnected.resolve)
    await disconnected.promise
  })
  for (const path of ['/gone', '/']) app.post(path, () => ({}))
  const url = await app.listen({ host: '127.0.0.1', port: 0 })

  const head = 'POST /gone HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n'
  const gone = new RawConnection(url).send(`${head}content-length: 9\r\n\r\n{`)
  await once(app.server, 'request')
  await gone[Symbol.asyncDispose]()
  await disconnected.promise

  const headers = { 'content-type': 'application/json' }
  const { status } = await fetch(url, { method: 'POST', headers, body: '{}' })
  assert.equal(status, 200)
})
