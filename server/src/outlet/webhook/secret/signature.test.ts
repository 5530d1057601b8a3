import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { createSigner, type Attempt } from './signature.ts'
import { newWebhookSecret } from './webhook-secret.ts'

const DELIVERY_ID = '019cab2f-0000-7000-8000-0000000000d1'
/** The package uses the real clock, so the attempts have the current time. */
const nowSeconds = Math.floor(Date.now() / 1_000)

const attemptOf = (changes: Partial<Attempt> = {}): Attempt => ({
  body: '{"a":1}',
  deliveryId: DELIVERY_ID,
  attempt: 3,
  sequence: 42,
  timestampSeconds: nowSeconds,
  traceId: null,
  isTest: false,
  ...changes,
})

/** Any character that UTF-8 can encode. fast-check's unit 'binary' takes a second to build. */
const anyChar = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((point) => String.fromCodePoint(point))
const anyBody = fc.string({ unit: anyChar, maxLength: 200 })
const anyGenerated = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => newWebhookSecret(() => Buffer.from(bytes)))
const anyCustom = fc
  .string({ unit: anyChar, minLength: 8, maxLength: 256 })
  .filter((secret) => !secret.startsWith('whsec_'))

const bodyHmac = (secret: string, body: string): string =>
  `v1=${createHmac('sha256', secret).update(body, 'utf8').digest('hex')}`

/** Verify like a receiver with a generated secret, and like one with a custom secret. */
const verifyGenerated = (secret: string, body: string, headers: Record<string, string>): unknown =>
  new Webhook(secret).verify(body, headers, { jsonParse: false })
const verifyCustom = (secret: string, body: string, headers: Record<string, string>): unknown =>
  new Webhook(Buffer.from(secret), { format: 'raw' }).verify(body, headers, { jsonParse: false })

test('an attempt has exactly these headers', () => {
  const signer = createSigner({ current: 'correct horse', next: null })
  const { 'webhook-signature': standard, ...headers } = signer(attemptOf())
  assert.deepEqual(headers, {
    'content-type': 'application/json',
    'user-agent': 'Annals-Webhooks/1',
    'x-service-signature': bodyHmac('correct horse', '{"a":1}'),
    'x-service-timestamp': String(nowSeconds),
    'x-service-delivery-id': DELIVERY_ID,
    'x-service-attempt': '3',
    'x-service-sequence': '42',
    'webhook-id': DELIVERY_ID,
    'webhook-timestamp': String(nowSeconds),
  })
  assert.match(standard ?? '', /^v1,[A-Za-z0-9+/]{43}=$/)
})

test('sends a trace id and the test marker only if there is one', () => {
  const signer = createSigner({ current: 'correct horse', next: null })
  const plain = signer(attemptOf())
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  assert.deepEqual(signer(attemptOf({ traceId })), { ...plain, 'x-trace-id': traceId })
  assert.deepEqual(signer(attemptOf({ isTest: true })), { ...plain, 'x-service-test': 'true' })
})

test('the standardwebhooks package accepts any body signed with a generated secret', () => {
  fc.assert(
    fc.property(anyGenerated, anyBody, (secret, body) => {
      const headers = createSigner({ current: secret, next: null })(attemptOf({ body }))
      verifyGenerated(secret, body, headers)
      assert.equal(headers['x-service-signature'], bodyHmac(secret, body))
    }),
  )
})

test('the standardwebhooks package accepts any custom secret, raw or as base64', () => {
  fc.assert(
    fc.property(anyCustom, anyBody, (secret, body) => {
      const headers = createSigner({ current: secret, next: null })(attemptOf({ body }))
      verifyCustom(secret, body, headers)
      verifyGenerated(Buffer.from(secret).toString('base64'), body, headers)
      assert.equal(headers['x-service-signature'], bodyHmac(secret, body))
    }),
  )
})

test('a custom secret that starts like a generated one but is not base64 signs as it is', () => {
  const secret = 'whsec_not base64!'
  const headers = createSigner({ current: secret, next: null })(attemptOf())
  verifyCustom(secret, '{"a":1}', headers)
})

test('during a rotation, the old secret signs the body and the package accepts either secret', () => {
  fc.assert(
    fc.property(anyCustom, anyGenerated, anyBody, (old, fresh, body) => {
      const headers = createSigner({ current: old, next: fresh })(attemptOf({ body }))
      verifyCustom(old, body, headers)
      verifyGenerated(fresh, body, headers)
      assert.equal(headers['x-service-signature'], bodyHmac(old, body))

      const alone = [old, fresh].map((current) => createSigner({ current, next: null }))
      const signatures = alone.map((signer) => signer(attemptOf({ body }))['webhook-signature'])
      assert.equal(
        headers['webhook-signature'],
        signatures.join(' '),
        'the old signature comes first',
      )
    }),
  )
})

test('the package rejects another body, id, timestamp or secret', () => {
  const secret = newWebhookSecret()
  const headers = createSigner({ current: secret, next: null })(attemptOf())
  verifyGenerated(secret, '{"a":1}', headers)
  const refusal = /No matching signature/
  const later = { ...headers, 'webhook-timestamp': String(nowSeconds + 1) }
  const other = { ...headers, 'webhook-id': 'another' }
  assert.throws(() => verifyGenerated(secret, '{"a":2}', headers), refusal)
  assert.throws(() => verifyGenerated(secret, '{"a":1}', later), refusal)
  assert.throws(() => verifyGenerated(secret, '{"a":1}', other), refusal)
  assert.throws(() => verifyGenerated(newWebhookSecret(), '{"a":1}', headers), refusal)
})

test('signs text and bytes identically, and keeps no state between attempts', () => {
  const signer = createSigner({ current: newWebhookSecret(), next: newWebhookSecret() })
  fc.assert(
    fc.property(anyBody, (body) => {
      const asText = signer(attemptOf({ body }))
      assert.deepEqual(signer(attemptOf({ body: Buffer.from(body) })), asText)
      assert.deepEqual(signer(attemptOf({ body })), asText)
    }),
  )
})
