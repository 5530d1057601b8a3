import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Secret } from '../../../platform/secret/secret.ts'
import { headerFault, openHeaders, sealHeaders } from './extra-headers.ts'
import { createSigner } from '../secret/signature.ts'
import { webhookSecretBox } from '../secret/webhook-secret.ts'

const box = webhookSecretBox(new Secret(Buffer.alloc(32, 1)))

test('no extra header can replace one that Annals sets, in upper or lower case', () => {
  const signed = createSigner({ current: 'correct horse', next: null })({
    body: '{}',
    deliveryId: 'a delivery',
    attempt: 1,
    sequence: 1,
    timestampSeconds: 1,
    traceId: 'a trace',
    isTest: true,
  })
  const names = Object.keys(signed)
  assert(names.length >= 12)
  for (const name of [...names, ...names.map((one) => one.toUpperCase())]) {
    assert.equal(headerFault({ [name]: 'x' })?.message, 'is reserved for Annals or for HTTP', name)
  }
})

test('refuses names that belong to HTTP or to traces', () => {
  const refused = [
    'Host',
    'content-length',
    'Content-Anything',
    'connection',
    'keep-alive',
    'transfer-encoding',
    'TE',
    'upgrade',
    'expect',
    'traceparent',
    'x-trace-id',
    'x-service-anything',
    'webhook-anything',
  ]
  for (const name of refused) assert(headerFault({ [name]: 'x' }), name)
})

test('refuses names that are not tokens, are too long or appear twice, and values with outer spaces', () => {
  const faults = ['', 'a b', 'a:b', 'a\nb', 'ü', 'x'.repeat(65)].map((name) => ({ [name]: 'x' }))
  for (const headers of [...faults, { 'X-A': '1', 'x-a': '2' }, { a: ' x' }, { a: 'x ' }]) {
    assert(headerFault(headers), JSON.stringify(headers))
  }
  const fine = { Authorization: 'Bearer a b', ['x'.repeat(64)]: 'x', __proto__x: 'x' }
  assert.equal(headerFault(fine), null)
})

test('headers can be decrypted only as the headers of their webhook', () => {
  const headers = { 'X-Token': 'letmein' }
  const sealed = sealHeaders(headers, 'one', box)
  assert(sealed && !sealed.includes('letmein'))
  assert.deepEqual(openHeaders(sealed, 'one', box), headers)
  assert.equal(openHeaders(sealed, 'other', box), null)
  assert.equal(box.open(sealed, 'one'), null)
})

test('stores null if there are no headers', () => {
  assert.equal(sealHeaders({}, 'one', box), null)
  assert.deepEqual(openHeaders(null, 'one', box), {})
})
