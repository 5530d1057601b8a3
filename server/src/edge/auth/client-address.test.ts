import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileRanges, isInRanges } from '../../tenancy/allowlist.ts'
import { clientAddress, networkOf } from './client-address.ts'

const NO_PROXIES = compileRanges([])
const PROXIES = compileRanges(['10.0.0.0/8', '::1/128'])

test('ignores the header without trusted proxies', () => {
  assert.equal(clientAddress('198.51.100.7', '203.0.113.1', NO_PROXIES), '198.51.100.7')
})

test('does not let a caller that is not a trusted proxy choose its address', () => {
  assert.equal(clientAddress('198.51.100.7', '10.0.0.1, 203.0.113.1', PROXIES), '198.51.100.7')
})

test('uses the last entry behind one trusted proxy', () => {
  assert.equal(clientAddress('10.0.0.1', '192.0.2.9', PROXIES), '192.0.2.9')
  assert.equal(clientAddress('::1', '2001:db8::9', PROXIES), '2001:db8::9')
})

test('ignores what the caller wrote itself, left of the first untrusted hop', () => {
  const header = '127.0.0.1, 203.0.113.66, 192.0.2.9, 10.0.0.2'
  assert.equal(clientAddress('10.0.0.1', header, PROXIES), '192.0.2.9')
})

test('joins several headers into one list, in order', () => {
  assert.equal(clientAddress('10.0.0.1', ['203.0.113.66', '192.0.2.9'], PROXIES), '192.0.2.9')
})

test('uses the first hop if every hop is a trusted proxy', () => {
  assert.equal(clientAddress('10.0.0.1', '10.0.0.3, 10.0.0.2', PROXIES), '10.0.0.3')
})

test('treats a trusted proxy without the header as the caller', () => {
  assert.equal(clientAddress('10.0.0.1', undefined, PROXIES), '10.0.0.1')
  assert.equal(clientAddress('10.0.0.1', '', PROXIES), '10.0.0.1')
  assert.equal(clientAddress('10.0.0.1', ' ', PROXIES), '10.0.0.1')
})

test('puts a caller without a valid address in no range, not even that of the proxy', () => {
  const everyone = compileRanges(['0.0.0.0/0', '::/0'])
  for (const hop of ['unknown', '_hidden', '192.0.2', '0300.0.2.9', '<script>', ' ', '-1']) {
    for (const header of [`203.0.113.66, ${hop}`, `203.0.113.66, ${hop}, 10.0.0.2`]) {
      const address = clientAddress('10.0.0.1', header, PROXIES)
      assert.equal(address, 'unknown', header)
      assert.equal(isInRanges(address, everyone), false)
      assert.notEqual(networkOf(address), networkOf('10.0.0.1'))
    }
  }
})

test('strips ports, brackets, zones and IPv4-in-IPv6 prefixes from addresses', () => {
  const spellings = {
    '192.0.2.9:51234': '192.0.2.9',
    '[2001:db8::9]': '2001:db8::9',
    '[2001:db8::9]:443': '2001:db8::9',
    'fe80::9%eth0': 'fe80::9',
    '::ffff:192.0.2.9': '192.0.2.9',
    '2001:0DB8::0009': '2001:db8::9',
  }
  for (const [hop, address] of Object.entries(spellings)) {
    assert.equal(clientAddress('::ffff:10.0.0.1', hop, PROXIES), address, hop)
  }
})

test('puts a socket without an address in no range', () => {
  assert.equal(clientAddress(undefined, '192.0.2.9', PROXIES), '')
})

test('treats IPv6 addresses of one network as one caller, and each IPv4 address as its own', () => {
  assert.equal(networkOf('2001:db8:1:2::9'), networkOf('2001:db8:1:2:ffff::1'))
  assert.notEqual(networkOf('2001:db8:1:2::9'), networkOf('2001:db8:1:3::9'))
  assert.notEqual(networkOf('192.0.2.9'), networkOf('192.0.2.10'))
  assert.equal(networkOf(''), '')
})
