import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export const ALLOWLIST_ENTRIES_MAX = 200

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = [Address, number]

/** A parsed list of CIDR ranges. A single address is a range of one. */
export type AddressRanges = readonly Range[]

/** Returns the entry as a CIDR, or null if invalid. Clears host bits, so equal ranges have equal text. */
export function parseCidr(text: string): string | null {
  const [addressText = '', bitsText, ...rest] = text.trim().split('/')
  const address = parseIpAddress(addressText)
  if (!address || rest.length > 0) return null
  const writtenBits = isIP(addressText) === 4 ? 32 : 128
  const bits = bitsText === undefined ? writtenBits : parseBits(bitsText, writtenBits)
  // The prefix length of an IPv4-mapped IPv6 address includes the 96 bits before the IPv4 address.
  const ownBits = bits === null ? null : bits - writtenBits + bitsOf(address)
  if (ownBits === null || ownBits < 0) return null
  return `${networkOf(address, ownBits)}/${ownBits}`
}

/**
 * Returns the address, or null if it is not in a plain form: programs disagree on what `010.0.0.1`,
 * `127.1` and `2130706433` mean, and a zone is meaningful only on one machine. An IPv4-mapped address
 * (`::ffff:1.2.3.4`) becomes the IPv4 address. `::1.2.3.4`, which RFC 4291 deprecates, is rejected,
 * although ipaddr.js treats it the same way.
 */
export function parseIpAddress(text: string): Address | null {
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

/** Whether a list allows an address. Null allows every address. */
export function isAddressAllowed(address: string, cidrs: readonly string[] | null): boolean {
  return cidrs === null || isInRanges(address, compileRanges(cidrs))
}

export function isInRanges(address: string, ranges: AddressRanges): boolean {
  const parsed = parseIpAddress(address)
  if (!parsed) return false
  return ranges.some(([base, bits]) => parsed.kind() === base.kind() && parsed.match(base, bits))
}
