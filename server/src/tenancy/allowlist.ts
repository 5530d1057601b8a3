import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export const ALLOWLIST_ENTRIES_MAX = 200

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = [Address, number]

/** A list of CIDRs, ready to be asked. A single address counts as a range of one. */
export type AddressRanges = readonly Range[]

/** The entry as a CIDR, or null when it is none. Host bits are cleared, so equal ranges look equal. */
export function parseCidr(text: string): string | null {
  const [addressText = '', bitsText, ...rest] = text.trim().split('/')
  const address = parseAddress(addressText)
  if (!address || rest.length > 0) return null
  const writtenBits = isIP(addressText) === 4 ? 32 : 128
  const bits = bitsText === undefined ? writtenBits : parseBits(bitsText, writtenBits)
  // A range written around an IPv4 address inside IPv6 counts the 96 bits before it.
  const ownBits = bits === null ? null : bits - writtenBits + bitsOf(address)
  if (ownBits === null || ownBits < 0) return null
  return `${networkOf(address, ownBits)}/${ownBits}`
}

/**
 * The address, or null. Only the plain forms: `010.0.0.1`, `127.1` and `2130706433` are other
 * addresses to other programs, and a zone has a meaning on one machine only. IPv4 written inside
 * IPv6 (`::ffff:1.2.3.4`) is the IPv4 address it is; `::1.2.3.4`, abandoned by RFC 4291, is not,
 * though ipaddr.js takes it for the same.
 */
export function parseAddress(text: string): Address | null {
  const isPlain = isIP(text) !== 0 && !text.includes('%') && !/^::\d+\./.test(text)
  return isPlain ? ipaddr.process(text) : null
}

function parseBits(text: string, bitsMax: number): number | null {
  return /^\d{1,3}$/.test(text) && Number(text) <= bitsMax ? Number(text) : null
}

function bitsOf(address: Address): number {
  return address.kind() === 'ipv4' ? 32 : 128
}

function networkOf(address: Address, bits: number): string {
  const cidr = `${address.toString()}/${bits}`
  return address.kind() === 'ipv4'
    ? ipaddr.IPv4.networkAddressFromCIDR(cidr).toString()
    : ipaddr.IPv6.networkAddressFromCIDR(cidr).toString()
}

export function compileRanges(cidrs: readonly string[]): AddressRanges {
  return cidrs.map((cidr) => ipaddr.parseCIDR(parseCidr(cidr) ?? cidr))
}

export function isInRanges(address: string, ranges: AddressRanges): boolean {
  const parsed = parseAddress(address)
  if (!parsed) return false
  return ranges.some(([base, bits]) => parsed.kind() === base.kind() && parsed.match(base, bits))
}
