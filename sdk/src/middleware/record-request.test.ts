import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventInput } from '../resource/types.ts'
import { type RecordOptions, recordRequest, type RequestInfo } from './record-request.ts'

const INFO: RequestInfo = {
  method: 'POST',
  url: '/invoices/42?draft=1',
  route: '/invoices/:id',
  status: 201,
  durationMs: 12.6,
  ip: '192.0.2.1',
  userAgent: 'test',
}

function recorded(info: Partial<RequestInfo>, options: RecordOptions<object> = {}) {
  const events: EventInput[] = []
  const recorder = { record: (event: EventInput) => events.push(event) > 0 }
  recordRequest(recorder, {}, { ...INFO, ...info }, options)
  return events
}

test('a request becomes an event with its route, actor and resource', () => {
  const options = {
    actor: () => ({ id: 'u1' }),
    resource: () => ({ type: 'invoice', id: '42' }),
    metadata: () => ({ plan: 'pro' }),
  }
  assert.deepEqual(recorded({}, options), [
    {
      category: 'http',
      action: 'POST /invoices/:id',
      actor: { id: 'u1' },
      resource: { type: 'invoice', id: '42' },
      metadata: {
        method: 'POST',
        path: '/invoices/42',
        query: { draft: '1' },
        status: 201,
        durationMs: 13,
        ip: '192.0.2.1',
        userAgent: 'test',
        plan: 'pro',
      },
    },
  ])
})

test('secrets in the query, the path and the metadata are replaced, however they are spelled', () => {
  const [event] = recorded(
    { url: '/reset/abc?access_token=1&q=a&q=b&Api-Key=2&pin=3', route: '/reset/:resetToken' },
    {
      redact: ['pin'],
      metadata: () => ({
        user: { name: 'Ann', newPassword: 'x', cards: [{ cardNumber: '4', last4: '1' }] },
        sessionId: 'y',
      }),
    },
  )
  const { path, query, user, sessionId } = event?.metadata ?? {}
  assert.equal(path, '/reset/[redacted]')
  const hidden = '[redacted]'
  assert.deepEqual(query, { access_token: hidden, q: ['a', 'b'], 'Api-Key': hidden, pin: hidden })
  const cards = [{ cardNumber: hidden, last4: '1' }]
  assert.deepEqual(user, { name: 'Ann', newPassword: hidden, cards })
  assert.equal(sessionId, hidden)
})

test('secrets are replaced in objects that know their JSON, and in a path with a slash at the end', () => {
  const user = { toJSON: () => ({ name: 'Ann', password: 'x' }) }
  const [event] = recorded(
    { url: '/reset/abc/', route: '/reset/:token' },
    { metadata: () => ({ user, at: new Date(0) }) },
  )
  assert.equal(event?.metadata?.['path'], '/reset/[redacted]/')
  assert.deepEqual(event?.metadata?.['user'], { name: 'Ann', password: '[redacted]' })
  assert.equal(event?.metadata?.['at'], '1970-01-01T00:00:00.000Z')
})

test('a path that does not match its route is not recorded if the route has a secret', () => {
  const [event] = recorded({ url: '/a/b/abc', route: '/reset/:token' })
  assert.equal(event?.metadata?.['path'], '/reset/:token')
})

test('only changes are recorded by default, and skipped requests are not', () => {
  assert.deepEqual(recorded({ method: 'GET' }), [])
  assert.equal(recorded({ method: 'GET' }, { methods: ['GET'] }).length, 1)
  assert.deepEqual(recorded({}, { skip: (_, { route }) => route === '/invoices/:id' }), [])
})

test('sampling keeps its share of the requests, and every failed one', () => {
  const draws = [0.1, 0.3, 0.2, 0.9]
  const options = { sample: 0.25, random: () => draws.shift() ?? 0 }
  assert.deepEqual(
    draws.slice().map(() => recorded({}, options).length),
    [1, 0, 1, 0],
  )
  assert.equal(recorded({ status: 403 }, { sample: 0 }).length, 1)
})

test('a function that throws is reported and affects nothing', () => {
  const errors: unknown[] = []
  const actor = () => {
    throw new Error('no user')
  }
  assert.deepEqual(recorded({}, { actor, onError: (error) => errors.push(error) }), [])
  assert.equal(errors.length, 1)
  assert.deepEqual(recorded({}, { actor }), [])
  assert.deepEqual(recorded({}, { actor, onError: actor }), [])
})
