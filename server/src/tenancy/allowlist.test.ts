import assert from 'node:assert/strict'
import { BlockList } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { rounds } from '../../test/harness/timing/fault-rounds.ts'
import { compileRanges, isInRanges, parseCidr } from './allowlist.ts'

test('an entry becomes a CIDR range with cleared host bits, so that equal ranges look equal', () => {
  const entries = {
    '10.1.2.3': '10.1.2.3/32',
    '10.1.2.3/8': '10.0.0.0/8',
    ' 192.0.2.0/24 ': '192.0.2.0/24',
    '0.0.0.0/0': '0.0.0.0/0',
    '::1': '::1/128',
    '2001:DB8::1/32': '2001:db8::/32',
    '::/0': '::/0',
  }
  for (const [entry, cidr] of Object.entries(entries)) assert.equal(parseCidr(entry), cidr, entry)
})

test('an IPv4 range written as IPv6 is stored as IPv4', () => {
  assert.equal(parseCidr('::ffff:10.1.2.3'), '10.1.2.3/32')
  assert.equal(parseCidr('::ffff:10.1.2.3/104'), '10.0.0.0/8')
  assert.equal(parseCidr('::ffff:a00:1/128'), '10.0.0.1/32')
  assert(isInRanges('10.1.2.3', compileRanges(['::ffff:10.1.2.3'])))
})

for (const entry of [
  '',
  '/',
  '10.0.0.0/',
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10.0.0.0/8/8',
  '10.0.0.0/8 10.0.0.0/8',
  '010.0.0.1',
  '010.0.0.0/8',
  '0x7f.0.0.1',
  '127.1',
  '127.1/8',
  '2130706433',
  '256.0.0.1',
  '1.2.3.4.5',
  '1.2.3',
  '::1/129',
  ':::',
  'fe80::1%eth0',
  'fe80::%eth0/64',
  '[::1]',
  '::1.2.3.4',
  'localhost',
  'example.com/24',
  '*',
  '10.0.0.*',
  '10.0.0.0-10.0.0.9',
  '１.2.3.4',
]) {
  test(`rejects "${entry}" as an entry, because it is invalid or ambiguous`, () => {
    assert.equal(parseCidr(entry), null)
  })
}

test('treats an IPv4 address written as IPv6 as IPv4', () => {
  const ranges = compileRanges(['10.0.0.0/8', '2001:db8::/32'])
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '::ffff:a01:203', '2001:db8::5']) {
    assert(isInRanges(address, ranges), address)
  }
  for (const address of ['11.0.0.1', '::ffff:11.0.0.1', '2001:db9::5', '::', 'ten', '', '10.1']) {
    assert(!isInRanges(address, ranges), address)
  }
})

test('the range of all IPv4 addresses contains no IPv6 address, and vice versa', () => {
  assert(!isInRanges('::1', compileRanges(['0.0.0.0/0'])))
  assert(!isInRanges('127.0.0.1', compileRanges(['::/0'])))
})

test('an empty list contains no addresses', () => {
  assert(!isInRanges('127.0.0.1', compileRanges([])))
})

test('agrees with another implementation for any range and address', () => {
  const ipv4 = fc.record({ address: fc.ipV4(), bits: fc.integer({ min: 0, max: 32 }) })
  const ipv6 = fc.record({ address: fc.ipV6(), bits: fc.integer({ min: 0, max: 128 }) })
  fc.assert(
    fc.property(fc.oneof(ipv4, ipv6), fc.oneof(fc.ipV4(), fc.ipV6()), (range, address) => {
      const cidr = parseCidr(`${range.address}/${range.bits}`)
      if (cidr === null || isMapped(range.address) || isMapped(address)) return
      if (address.startsWith('::') && address.includes('.')) return
      const oracle = new BlockList()
      oracle.addSubnet(range.address, range.bits, kindOf(range.address))
      // The oracle also matches IPv4 addresses against IPv6 ranges; an allowlist doesn't.
      const isSameKind = kindOf(range.address) === kindOf(address)
      const isExpected = isSameKind && oracle.check(address, kindOf(address))
      assert.equal(isInRanges(address, compileRanges([cidr])), isExpected)
      assert(isInRanges(range.address, compileRanges([cidr])), 'a range contains its own address')
      assert.equal(parseCidr(cidr), cidr, 'parsing a parsed entry changes nothing')
    }),
    { numRuns: rounds(600, 2_000) },
  )
})

const kindOf = (address: string) => (address.includes(':') ? 'ipv6' : 'ipv4')

/** Whether this is an IPv4-mapped IPv6 address. The URL parser normalizes the spelling first. */
function isMapped(address: string): boolean {
  return kindOf(address) === 'ipv6' && new URL(`http://[${address}]`).host.startsWith('[::ffff:')
}
