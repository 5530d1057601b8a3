import { compileRanges, isInRanges, parseIpAddress } from '../../../tenancy/allowlist.ts'

/**
 * Addresses that webhooks must not reach: the whole IANA special-purpose registry for IPv4, even its few
 * routed ranges, because none of them has a receiver; multicast; and the metadata address of Azure. Those of
 * other clouds (169.254.169.254, 100.100.100.200, 192.0.0.192, fd00:ec2::254, fd20:ce::254) are in ranges
 * that are blocked anyway.
 */
const REFUSED_IPV4 = {
  '0.0.0.0/8': 'this network; Linux treats 0.0.0.0 as the local host',
  '10.0.0.0/8': 'private use',
  '100.64.0.0/10': 'carrier-grade NAT; also used inside clouds',
  '127.0.0.0/8': 'loopback',
  '168.63.129.16/32': 'Azure host services',
  '169.254.0.0/16': 'link-local; cloud metadata',
  '172.16.0.0/12': 'private use',
  '192.0.0.0/24': 'IETF protocol assignments',
  '192.0.2.0/24': 'documentation',
  '192.31.196.0/24': 'AS112, which resolves private names',
  '192.52.193.0/24': 'multicast relays',
  '192.88.99.0/24': '6to4 relays',
  '192.168.0.0/16': 'private use',
  '192.175.48.0/24': 'AS112, which resolves private names',
  '198.18.0.0/15': 'benchmarks',
  '198.51.100.0/24': 'documentation',
  '203.0.113.0/24': 'documentation',
  '224.0.0.0/4': 'multicast',
  '240.0.0.0/4': 'reserved, and broadcast',
} as const

/**
 * For IPv6 it is the reverse: only one eighth of the space is in use, and everything else is blocked. That
 * includes loopback, IPv4-compatible (`::7f00:1`, unicast to ipaddr.js), translated, both NAT64 prefixes,
 * unique local, link-local and multicast. For IPv4-mapped addresses, the embedded IPv4 address decides.
 */
const GLOBAL_IPV6 = '2000::/3'

const REFUSED_IPV6 = {
  '2001::/23': 'IETF protocol assignments, among them Teredo, which embeds an IPv4 address',
  '2001:db8::/32': 'documentation',
  '2002::/16': '6to4, which embeds an IPv4 address',
  '2620:4f:8000::/48': 'AS112, which resolves private names',
  '3fff::/20': 'documentation',
} as const

const refused = compileRanges([...Object.keys(REFUSED_IPV4), ...Object.keys(REFUSED_IPV6)])
const globalIpv6 = compileRanges([GLOBAL_IPV6])

/** Whether a webhook may reach this address. False for text that isn't a plain address or has a zone. */
export function isPublicAddress(address: string): boolean {
  const parsed = parseIpAddress(address)
  if (!parsed || isInRanges(address, refused)) return false
  return parsed.kind() === 'ipv4' || isInRanges(address, globalIpv6)
}
