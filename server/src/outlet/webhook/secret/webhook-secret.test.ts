import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { contractKey, newWebhookSecret, standardKey } from './webhook-secret.ts'

/** At least one byte: an empty key encodes to empty base64, and an HMAC key must not be empty. */
const anyBytes = fc.uint8Array({ minLength: 1, maxLength: 64 }).map((bytes) => Buffer.from(bytes))

test('a generated secret is the prefix and 32 random bytes in base64', () => {
  const secret = newWebhookSecret((bytes) => Buffer.alloc(bytes, 0xfb))
  assert.equal(secret, `whsec_${Buffer.alloc(32, 0xfb).toString('base64')}`)
  assert.match(newWebhookSecret(), /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.notEqual(newWebhookSecret(), newWebhookSecret())
})

test('the key of the contract is the whole secret, including the prefix, in UTF-8', () => {
  const text = 'whsec_c2VjcmV0'
  assert.deepEqual(contractKey(text), Buffer.from(text))
  assert.deepEqual(contractKey('sésame 🗝'), Buffer.from('sésame 🗝', 'utf8'))
})

test('the standard key is the base64 after the prefix, padded or not', () => {
  fc.assert(
    fc.property(anyBytes, (bytes) => {
      const encoded = bytes.toString('base64')
      assert.deepEqual(standardKey(`whsec_${encoded}`), bytes)
      assert.deepEqual(standardKey(`whsec_${encoded.replaceAll('=', '')}`), bytes)
    }),
  )
})

test('a secret without the prefix is used as it is, even if it could be base64', () => {
  for (const secret of [
    'password',
    'c2VjcmV0',
    'WHSEC_c2VjcmV0',
    ' whsec_c2VjcmV0',
    'whsec-c2Vj',
  ]) {
    assert.deepEqual(standardKey(secret), Buffer.from(secret))
  }
})

test('a secret with the prefix that is not base64 is used as it is', () => {
  const afterPrefix = [
    '',
    '==',
    'a',
    'abcde',
    'ab=',
    'abc==',
    'abcd=',
    'ab==cd',
    'ab-_',
    'ab cd',
    'abcd\n',
    'é123',
    'not base64!',
  ]
  for (const text of afterPrefix) {
    assert.deepEqual(standardKey(`whsec_${text}`), Buffer.from(`whsec_${text}`), text)
  }
})

test('no custom secret throws or results in an empty key', () => {
  const tail = fc.oneof(fc.string({ unit: 'grapheme' }), fc.base64String())
  fc.assert(
    fc.property(fc.constantFrom('', 'whsec_'), tail, (prefix, text) => {
      fc.pre(prefix + text !== '')
      assert(standardKey(prefix + text).length > 0)
      assert(contractKey(prefix + text).length > 0)
    }),
  )
})

test('decodes a secret like the standardwebhooks package wherever that is valid base64', () => {
  const at = new Date(1_772_366_400_000)
  fc.assert(
    fc.property(anyBytes, (bytes) => {
      const secret = `whsec_${bytes.toString('base64')}`
      const theirs = new Webhook(secret).sign('id', at, 'body')
      assert.equal(
        new Webhook(standardKey(secret), { format: 'raw' }).sign('id', at, 'body'),
        theirs,
      )
    }),
  )
})

test('the standardwebhooks package behaves as the comment says', () => {
  const at = new Date(1_772_366_400_000)
  const sign = (secret: string): string => new Webhook(secret).sign('id', at, 'body')
  assert.equal(sign('c2VjcmV0'), sign('whsec_c2VjcmV0'), 'decodes without the prefix')
  assert.equal(sign('whsec_c2VjcmU'), sign('whsec_c2VjcmU='), 'accepts one without padding')
  assert.equal(sign('whsec_c2VjcmV0x'), sign('whsec_c2VjcmV0'), 'drops leftover bits')
  assert.throws(() => sign('whsec_not base64!'), /incorrect characters/)
  assert.throws(() => sign('whsec_=='), Error)
})
