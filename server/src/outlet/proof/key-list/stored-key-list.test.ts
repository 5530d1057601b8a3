import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Secret } from '../../../platform/secret/secret.ts'
import { type StoredSigningKey, parseKeyList, writeKeyList } from './stored-key-list.ts'

const authenticator = { secretKey: new Secret(randomBytes(32)) }
const publicKey = Buffer.alloc(32, 7).toString('base64')
const from = '2026-01-01T00:00:00.000Z'
const key: StoredSigningKey = { publicKey, from, to: null, announced: true }

/** What a list with this key is, if someone who has the secret key wrote it. */
const kindOf = (changes: Partial<StoredSigningKey>): string => {
  const list = { number: 1, generation: 0, keys: [{ ...key, ...changes }] }
  return parseKeyList(writeKeyList(list, authenticator), authenticator).kind
}

test('reads a list as it was written', () => {
  assert.equal(kindOf({}), 'authentic')
  assert.equal(kindOf({ to: '2026-02-01T00:00:00.000Z' }), 'authentic')
})

test('a list with a key that is not 32 bytes in canonical base64 is damaged', () => {
  for (const text of [
    'EVILKEY=\r\u001B[2K\u001B[8m',
    '',
    publicKey.slice(0, -1),
    `${publicKey}\n`,
    ` ${publicKey}`,
    Buffer.alloc(31).toString('base64'),
    Buffer.alloc(33).toString('base64'),
    // The same bytes, written differently.
    publicKey.replace('c=', 'd='),
    Buffer.alloc(32, 255).toString('base64url'),
  ]) {
    assert.equal(kindOf({ publicKey: text }), 'damaged', JSON.stringify(text))
  }
})

test('a list with a time in another form is damaged', () => {
  for (const time of [
    '2026',
    '2026-01-01',
    '2026-01-01T00:00:00Z',
    `${from}\u001B`,
    'Jan 1 2026 (x)',
  ]) {
    assert.equal(kindOf({ from: time }), 'damaged', time)
    assert.equal(kindOf({ to: time }), 'damaged', time)
  }
})
