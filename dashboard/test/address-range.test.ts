import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInEntries } from '../src/pages/keys/allowlist/address-range.ts'

test('an address is listed if an entry is the address or a range that contains it', () => {
  for (const [address, entry] of [
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.1', '127.0.0.1/32'],
    ['203.0.113.7', '203.0.113.0/24'],
    ['203.0.113.7', '0.0.0.0/0'],
    ['::1', '0:0::1'],
    ['2001:db8::7', '2001:DB8::/32'],
    ['2001:db8::7', '2001:db8:0:0:0:0:0:7/128'],
  ] as const) {
    assert.equal(isInEntries(address, ['198.51.100.1', entry]), true, `${address} in ${entry}`)
  }
})

test('an address is not listed if no entry contains it or an entry is invalid', () => {
  const entries = ['127.0.0.2', '203.0.112.0/24', '2001:db9::/32', '127.0.0.1/33', '127.0.0.1/x']
  const invalid = [
    '',
    '127.0.0',
    '127.0.0.1.1',
    '127.0.0.256',
    '::/0',
    'http://[::1]',
    ':::',
    '1::2::3',
  ]
  for (const entry of [...entries, ...invalid]) {
    assert.equal(isInEntries('127.0.0.1', [entry]), false, entry)
  }
  assert.equal(isInEntries('2001:db8::7', ['2001:db9::/32', '0.0.0.0/0', '2001:db8::8']), false)
  assert.equal(isInEntries('', ['0.0.0.0/0']), false)
})
