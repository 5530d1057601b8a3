import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { SecretBox } from './secret-box.ts'
import { Secret } from './secret.ts'

const secretKey = new Secret(randomBytes(32))
const box = new SecretBox(secretKey, 'webhook')
const WEBHOOK_ID = '019cab2f-0000-7000-8000-000000000001'
const anyText = fc.string({ unit: 'grapheme' })

test('sealed text opens with its own context, on every node with the same key', () => {
  const other = new SecretBox(secretKey, 'webhook')
  fc.assert(
    fc.property(anyText, anyText, (plain, associated) => {
      assert.equal(other.open(box.seal(plain, associated), associated), plain)
    }),
  )
})

test('sealed text cannot be opened in another context', () => {
  fc.assert(
    fc.property(anyText, anyText, anyText, (plain, associated, other) => {
      fc.pre(associated !== other)
      assert.equal(box.open(box.seal(plain, associated), other), null)
    }),
  )
})

test('another secret key or purpose does not open sealed text', () => {
  const sealed = box.seal('whsec_x', WEBHOOK_ID)
  const otherKey = new SecretBox(new Secret(randomBytes(32)), 'webhook')
  assert.equal(otherKey.open(sealed, WEBHOOK_ID), null)
  assert.equal(new SecretBox(secretKey, 'session').open(sealed, WEBHOOK_ID), null)
})

test('sealed text with a changed byte cannot be opened', () => {
  const sealed = box.seal('whsec_x', WEBHOOK_ID)
  for (let index = 0; index < sealed.length; index += 1) {
    for (const flip of [0x01, 0x80, 0xff]) {
      const altered = Buffer.from(sealed)
      altered[index] = (altered[index] ?? 0) ^ flip
      assert.equal(box.open(altered, WEBHOOK_ID), null, `byte ${index}`)
    }
  }
})

test('truncated or extended sealed text does not open', () => {
  const sealed = box.seal('whsec_x', WEBHOOK_ID)
  for (let length = 0; length < sealed.length; length += 1) {
    assert.equal(box.open(sealed.subarray(0, length), WEBHOOK_ID), null, `${length} bytes`)
  }
  assert.equal(box.open(Buffer.concat([sealed, Buffer.of(0)]), WEBHOOK_ID), null)
})

test('the same text is sealed differently each time and reveals nothing', () => {
  const first = box.seal('a plain text to look for', WEBHOOK_ID)
  const second = box.seal('a plain text to look for', WEBHOOK_ID)
  assert.notDeepEqual(first.subarray(1, 13), second.subarray(1, 13), 'a nonce is never used twice')
  assert.notDeepEqual(first.subarray(29), second.subarray(29))
  assert.equal(first.includes('plain text'), false)
  assert.equal(first[0], 1, 'the version comes first')
})

test('throws for text that UTF-8 cannot represent', () => {
  assert.throws(() => box.seal('\ud800', WEBHOOK_ID), assert.AssertionError)
})
