import assert from 'node:assert/strict'
import { BlockList } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { rounds } from '../../../../test/harness/timing/fault-rounds.ts'
import { isPublicAddress } from './public-address.ts'

/** The registries as IANA publishes them, unlike our table: including entries nested in others. */
const SPECIAL_IPV4 = [
  '0.0.0.0/8',
  '0.0.0.0/32',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.0.0/29',
  '192.0.0.9/32',
  '192.0.0.10/32',
  '192.0.0.170/31',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '255.255.255.255/32',
] as const

const SPECIAL_IPV6 = [
  '::/128',
  '::1/128',
  '::/96',
  '::ffff:0:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '100:0:0:1::/64',
  '2001::/23',
  '2001::/32',
  '2001:1::1/128',
  '2001:2::/48',
  '2001:3::/32',
  '2001:4:112::/48',
  '2001:10::/28',
  '2001:20::/28',
  '2001:30::/28',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
] as const

for (const range of [...SPECIAL_IPV4, ...SPECIAL_IPV6]) {
  test(`no address in ${range} is public, including the first and the last`, () => {
    const [base, bits] = ipaddr.parseCIDR(range)
    const network = base.toByteArray()
    const inside = fc
      .uint8Array({ minLength: network.length, maxLength: network.length })
      .map((noise) => within(network, bits, noise))
    fc.assert(fc.property(inside, (address) => !isPublicAddress(address)))
    for (const noise of [0x00, 0xff]) {
      assert(!isPublicAddress(within(network, bits, new Uint8Array(network.length).fill(noise))))
    }
  })
}

/** An address in the network: the first `bits` are the network's, the rest comes from `noise`. */
function within(network: readonly number[], bits: number, noise: Uint8Array): string {
  const bytes = network.map((byte, index) => {
    const fixed = Math.min(8, Math.max(0, bits - index * 8))
    const mask = (0xff << (8 - fixed)) & 0xff
    return (byte & mask) | ((noise[index] ?? 0) & ~mask & 0xff)
  })
  return ipaddr.fromByteArray(bytes).toString()
}

test('cloud metadata addresses are not public', () => {
  for (const address of [
    '169.254.169.254',
    '169.254.170.2',
    '169.254.0.23',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    'fd00:ec2::254',
    'fd20:ce::254',
    'fe80::a9fe:a9fe',
  ]) {
    assert(!isPublicAddress(address), address)
  }
})

test('the neighbors of a blocked range are public', () => {
  for (const address of [
    '1.0.0.0',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '168.63.129.15',
    '168.63.129.17',
    '169.253.255.255',
    '169.255.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2000::',
    '2001:200::1',
    '2001:4860:4860::8888',
    '2003::1',
    '2606:4700::1111',
    '3ffe:ffff::1',
  ]) {
    assert(isPublicAddress(address), address)
  }
})

test('an IPv4 address is public exactly if no registry lists it', () => {
  const special = blockList(SPECIAL_IPV4, 'ipv4')
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const isSpecial = special.check(address, 'ipv4') || address === '168.63.129.16'
      return isPublicAddress(address) === !isSpecial
    }),
    { numRuns: rounds(600, 2_000) },
  )
})

test('an IPv6 address is public exactly if it is global unicast and no registry lists it', () => {
  const special = blockList(SPECIAL_IPV6, 'ipv6')
  const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 7, maxLength: 7 })
  const first = fc.oneof(
    fc.integer({ min: 0, max: 0xffff }),
    fc.constantFrom(0x2001, 0x2002, 0x2620, 0x3fff, 0x4000, 0x1fff),
  )
  fc.assert(
    fc.property(first, groups, (head, rest) => {
      const address = [head, ...rest].map((group) => group.toString(16)).join(':')
      const isGlobal = head >= 0x2000 && head <= 0x3fff
      return isPublicAddress(address) === (isGlobal && !special.check(address, 'ipv6'))
    }),
    { numRuns: rounds(600, 2_000) },
  )
})

function blockList(ranges: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [base = '', bits] = range.split('/')
    list.addSubnet(base, Number(bits), family)
  }
  return list
}

test('every notation of an IPv6 address gets the same decision', () => {
  const bytes = fc.uint8Array({ minLength: 16, maxLength: 16 })
  fc.assert(
    fc.property(bytes, fc.boolean(), (noise, isGlobal) => {
      const address = ipaddr.fromByteArray([isGlobal ? 0x20 : (noise[0] ?? 0), ...noise.slice(1)])
      const spellings = [
        address.toString(),
        address.toNormalizedString(),
        address.toString().toUpperCase(),
        address
          .toNormalizedString()
          .split(':')
          .map((group) => group.padStart(4, '0'))
          .join(':'),
      ]
      return new Set(spellings.map(isPublicAddress)).size === 1
    }),
  )
})

test('an IPv4-mapped address is treated like its IPv4 address, and other embeddings are rejected', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
      const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
      for (const mapped of [`::ffff:${address}`, `::ffff:${hex}`, `0:0:0:0:0:FFFF:${hex}`]) {
        assert.equal(isPublicAddress(mapped), isPublicAddress(address), mapped)
      }
      for (const wrap of [
        `::${address}`,
        `::${hex}`,
        `0:0:0:0:0:0:${address}`,
        `::ffff:0:${hex}`,
        `64:ff9b::${address}`,
        `64:ff9b:1::${hex}`,
        `2002:${hex}::1`,
        `2001:0:${hex}::1`,
      ]) {
        assert(!isPublicAddress(wrap), wrap)
      }
    }),
  )
})

test('text that is not a plain address is not public', () => {
  for (const text of [
    '',
    'example.com',
    '8.8.8.8.',
    '8.8.8',
    '010.8.8.8',
    '0x8.8.8.8',
    '134744072',
    ' 8.8.8.8',
    '8.8.8.8:443',
    '8.8.8.8/32',
    '[2606:4700::1111]',
    '2606:4700::1111%eth0',
    'fe80::1%1',
  ]) {
    assert(!isPublicAddress(text), text)
  }
  fc.assert(fc.property(fc.string(), (text) => typeof isPublicAddress(text) === 'boolean'))
})
